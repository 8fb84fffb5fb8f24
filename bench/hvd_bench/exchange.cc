// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter, alltoall and barrier.
#include <algorithm>
#include <stdexcept>

#include "bench/hvd_bench/filled.h"
#include "hvd/hvd.hpp"

namespace bench {
namespace {

// Sum; each rank keeps its rows: as equal as possible, the first ranks one more.
class ReduceScatter : public Filled {
 public:
  explicit ReduceScatter(const Plan& plan)
      : Filled(plan),
        whole_(plan.dtype, count(), plan.memory),
        mine_(plan.dtype, FirstOf(hvd::rank() + 1) - FirstOf(hvd::rank()), plan.memory) {
    options_.op = HVD_SUM;
  }
  void CheckAll() const override {
    const size_t first = FirstOf(hvd::rank());
    for (size_t i = 0; i < mine_.count(); ++i) mine_.Expect(i, SumOf(first + i));
  }
  void CheckEnds() const override {
    if (mine_.count() == 0) return;
    const size_t first = FirstOf(hvd::rank()), last = mine_.count() - 1;
    mine_.Expect(0, SumOf(first));
    mine_.Expect(last, SumOf(first + last));
  }
  double bus_factor() const override { return Others(); }
  Ends ends() const override { return {&whole_, &mine_}; }

 private:
  size_t FirstOf(int rank) const {
    const size_t size = hvd::size(), at = rank;
    return count() / size * at + std::min(at, count() % size);
  }
  void Refill() override {
    FillMine(&whole_);
    mine_.SetAll(kNothing);
  }
  hvd_status_t Call() override {
    return hvd_reducescatter(whole_.tensor(), mine_.tensor(), &options_, nullptr);
  }
  hvd_status_t Submit(hvd_handle_t* handle) override {
    return hvd_reducescatter_async(whole_.tensor(), mine_.tensor(), &options_, handle);
  }

  Buffer whole_;
  Buffer mine_;
};

// Equal shares from everyone to everyone; the count is a multiple of the ranks.
class Alltoall : public Filled {
 public:
  explicit Alltoall(const Plan& plan)
      : Filled(plan),
        share_(count() / hvd::size()),
        sent_(plan.dtype, count(), plan.memory),
        received_(plan.dtype, count(), plan.memory) {}
  void CheckAll() const override {
    for (size_t i = 0; i < received_.count(); ++i) ExpectAt(i);
  }
  void CheckEnds() const override {
    for (size_t first = 0; first < received_.count(); first += share_) {
      ExpectAt(first);
      ExpectAt(first + share_ - 1);
    }
  }
  double bus_factor() const override { return Others(); }
  Ends ends() const override { return {&sent_, &received_}; }

 private:
  void ExpectAt(size_t index) const {
    const int sender = static_cast<int>(index / share_);
    received_.Expect(index, ValueOf(sender, hvd::rank() * share_ + index % share_));
  }
  void Refill() override {
    FillMine(&sent_);
    received_.SetAll(kNothing);
  }
  hvd_status_t Call() override {
    return hvd_alltoall(sent_.tensor(), nullptr, 0, received_.tensor(), &options_, nullptr,
                        nullptr);
  }
  hvd_status_t Submit(hvd_handle_t* handle) override {
    return hvd_alltoall_async(sent_.tensor(), nullptr, 0, received_.tensor(), &options_, handle);
  }

  size_t share_;  // elements
  Buffer sent_;
  Buffer received_;
};

class Barrier : public Collective {
 public:
  explicit Barrier(bool async) {
    if (async) throw std::invalid_argument("a barrier is never asynchronous");
  }
  size_t bytes() const override { return 0; }
  void FillPattern() override {}
  void FillAlike() override {}
  void Run() override { ThrowIfError(hvd_barrier(nullptr)); }
  void Begin() override {}
  void End() override { Run(); }
  void WaitOnHost(bool) override {}
  Ends ends() const override { return {}; }
  void CheckAll() const override {}
  void CheckEnds() const override {}
  double bus_factor() const override { return 0; }
};

}  // namespace

std::unique_ptr<Collective> MakeReduceScatter(const Plan& plan) {
  return std::make_unique<ReduceScatter>(plan);
}

std::unique_ptr<Collective> MakeAlltoall(const Plan& plan) {
  const size_t unit = plan.dtype.bytes * hvd::size();
  Plan even = plan;
  even.bytes = (plan.bytes + unit - 1) / unit * unit;
  return std::make_unique<Alltoall>(even);
}

std::unique_ptr<Collective> MakeBarrier(const Plan& plan) {
  return std::make_unique<Barrier>(plan.async);
}

}  // namespace bench
