// SPDX-License-Identifier: Apache-2.0
#include "bench/hvd_bench/collective.h"

#include <stdexcept>

#include "bench/hvd_bench/filled.h"
#include "hvd/hvd.hpp"

namespace bench {
namespace {

// Sum, in place.
class Allreduce : public Filled {
 public:
  explicit Allreduce(const Plan& plan) : Filled(plan), data_(plan.dtype, count(), plan.memory) {
    options_.op = HVD_SUM;
  }
  void CheckAll() const override {
    for (size_t i = 0; i < data_.count(); ++i) data_.Expect(i, SumOf(i));
  }
  void CheckEnds() const override {
    data_.Expect(0, SumOf(0));
    data_.Expect(data_.count() - 1, SumOf(data_.count() - 1));
  }
  double bus_factor() const override { return 2 * Others(); }
  Ends ends() const override { return {&data_, &data_}; }

 private:
  void Refill() override { FillMine(&data_); }
  hvd_status_t Call() override { return hvd_allreduce(data_.tensor(), data_.tensor(), &options_); }
  hvd_status_t Submit(hvd_handle_t* handle) override {
    return hvd_allreduce_async(data_.tensor(), data_.tensor(), &options_, handle);
  }

  Buffer data_;
};

// The ranks' shares of a tensor, put together on every rank; shares differ by one element at most.
class Allgather : public Filled {
 public:
  explicit Allgather(const Plan& plan)
      : Filled(plan),
        whole_(plan.dtype, count(), plan.memory),
        mine_(plan.dtype, FirstOf(hvd::rank() + 1) - FirstOf(hvd::rank()), plan.memory) {}
  void CheckAll() const override {
    for (int rank = 0; rank < hvd::size(); ++rank) {
      for (size_t i = FirstOf(rank); i < FirstOf(rank + 1); ++i) whole_.Expect(i, ValueOf(rank, i));
    }
  }
  void CheckEnds() const override {
    for (int rank = 0; rank < hvd::size(); ++rank) {
      if (FirstOf(rank) == FirstOf(rank + 1)) continue;
      whole_.Expect(FirstOf(rank), ValueOf(rank, FirstOf(rank)));
      whole_.Expect(FirstOf(rank + 1) - 1, ValueOf(rank, FirstOf(rank + 1) - 1));
    }
  }
  double bus_factor() const override { return Others(); }
  Ends ends() const override { return {&mine_, &whole_}; }

 private:
  // Where a rank's share begins in the whole.
  size_t FirstOf(int rank) const { return count() * rank / hvd::size(); }
  void Refill() override {
    FillMine(&mine_, FirstOf(hvd::rank()));
    whole_.SetAll(kNothing);
  }
  hvd_status_t Call() override {
    return hvd_allgather(mine_.tensor(), whole_.tensor(), &options_, nullptr);
  }
  hvd_status_t Submit(hvd_handle_t* handle) override {
    return hvd_allgather_async(mine_.tensor(), whole_.tensor(), &options_, handle);
  }

  Buffer whole_;
  Buffer mine_;
};

class Broadcast : public Filled {
 public:
  explicit Broadcast(const Plan& plan) : Filled(plan), data_(plan.dtype, count(), plan.memory) {
    options_.root = kRoot;
  }
  void CheckAll() const override {
    for (size_t i = 0; i < data_.count(); ++i) data_.Expect(i, ValueOf(kRoot, i));
  }
  void CheckEnds() const override {
    data_.Expect(0, ValueOf(kRoot, 0));
    data_.Expect(data_.count() - 1, ValueOf(kRoot, data_.count() - 1));
  }
  double bus_factor() const override { return 1; }
  Ends ends() const override { return {&data_, &data_}; }

 private:
  static constexpr int kRoot = 0;
  void Refill() override { FillMine(&data_); }
  hvd_status_t Call() override { return hvd_broadcast(data_.tensor(), data_.tensor(), &options_); }
  hvd_status_t Submit(hvd_handle_t* handle) override {
    return hvd_broadcast_async(data_.tensor(), data_.tensor(), &options_, handle);
  }

  Buffer data_;
};

template <class T>
std::unique_ptr<Collective> Make(const Plan& plan) {
  return std::make_unique<T>(plan);
}

struct Operation {
  const char* name;
  std::unique_ptr<Collective> (*make)(const Plan& plan);
};

const Operation kOperations[] = {
    {"allreduce", Make<Allreduce>}, {"allgather", Make<Allgather>},
    {"broadcast", Make<Broadcast>}, {"reducescatter", MakeReduceScatter},
    {"alltoall", MakeAlltoall},     {"barrier", MakeBarrier},
};

}  // namespace

const std::vector<std::string>& Operations() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
    for (const Operation& operation : kOperations) names.emplace_back(operation.name);
    return names;
  }();
  return all;
}

std::unique_ptr<Collective> MakeCollective(const Plan& plan) {
  for (const Operation& operation : kOperations) {
    if (plan.op == operation.name) return operation.make(plan);
  }
  throw std::invalid_argument("no such operation: " + plan.op);
}

}  // namespace bench
