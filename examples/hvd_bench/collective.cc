#include "examples/hvd_bench/collective.h"

#include <algorithm>
#include <cstdint>

#include "hvd/hvd.hpp"

namespace bench {
namespace {

constexpr int kRoot = 0;

void ThrowIfError(hvd_status_t status) {
  if (status != HVD_OK) throw hvd::Error(status, hvd_last_error());
}

// A buffer of elements of a type known at run time.
class Buffer {
 public:
  Buffer(const Dtype& dtype, size_t count)
      : dtype_(dtype),
        count_(count),
        memory_(count * dtype.bytes),
        shape_(static_cast<int64_t>(count)) {
    tensor_.data = memory_.data();
    tensor_.shape = &shape_;
    tensor_.ndim = 1;
    tensor_.dtype = dtype.code;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  size_t count() const { return count_; }
  size_t bytes() const { return memory_.size(); }
  const hvd_tensor_t* tensor() const { return &tensor_; }
  void Set(size_t index, double value) { Store(dtype_, value, &memory_[index * dtype_.bytes]); }
  void SetAll(double value) { Fill(dtype_, value, memory_.data(), count_); }

  void Expect(size_t index, double value) const {
    unsigned char wanted[8];
    Store(dtype_, value, wanted);  // as the type holds it
    const unsigned char* const found = &memory_[index * dtype_.bytes];
    if (std::equal(found, found + dtype_.bytes, wanted)) return;
    throw WrongValue("rank " + std::to_string(hvd::rank()) + ": element " + std::to_string(index) +
                     " of " + std::to_string(count_) + " " + dtype_.name + " is " +
                     std::to_string(Load(dtype_, found)) + ", must be " +
                     std::to_string(Load(dtype_, wanted)));
  }

 private:
  Dtype dtype_;
  size_t count_;
  std::vector<unsigned char> memory_;
  int64_t shape_;
  hvd_tensor_t tensor_ = HVD_TENSOR_INIT;
};

size_t CountFor(const Dtype& dtype, size_t bytes) {
  return std::max<size_t>(1, bytes / dtype.bytes);
}

// In both fills the value depends on the rank; in the second it does not depend on the place.
class Filled : public Collective {
 public:
  Filled(const Dtype& dtype, const char* name) : dtype_(dtype) { options_.name = name; }

  void FillPattern() override {
    alike_ = false;
    Refill();
  }
  void FillAlike() override {
    alike_ = true;
    Refill();
  }

 protected:
  virtual void Refill() = 0;

  double ValueOf(int rank, size_t index) const { return Pattern(rank, alike_ ? 0 : index); }
  double SumOf(size_t index) const { return PatternSum(dtype_, hvd::size(), alike_ ? 0 : index); }
  // This rank's values into `buffer`, whose first element has the place `first` in the whole.
  void FillMine(Buffer* buffer, size_t first = 0) const {
    if (alike_) return buffer->SetAll(ValueOf(hvd::rank(), 0));
    for (size_t i = 0; i < buffer->count(); ++i) buffer->Set(i, ValueOf(hvd::rank(), first + i));
  }

  Dtype dtype_;
  bool alike_ = false;
  hvd_options_t options_ = HVD_OPTIONS_INIT;
};

// Sum, in place.
class Allreduce : public Filled {
 public:
  Allreduce(const Dtype& dtype, size_t bytes)
      : Filled(dtype, "bench.allreduce"), data_(dtype, CountFor(dtype, bytes)) {
    options_.op = HVD_SUM;
  }
  size_t bytes() const override { return data_.bytes(); }
  void Run() override { ThrowIfError(hvd_allreduce(data_.tensor(), data_.tensor(), &options_)); }
  void CheckAll() const override {
    for (size_t i = 0; i < data_.count(); ++i) data_.Expect(i, SumOf(i));
  }
  void CheckEnds() const override {
    data_.Expect(0, SumOf(0));
    data_.Expect(data_.count() - 1, SumOf(data_.count() - 1));
  }
  double bus_factor() const override { return 2.0 * (hvd::size() - 1) / hvd::size(); }

 private:
  void Refill() override { FillMine(&data_); }

  Buffer data_;
};

// The ranks' shares of a tensor, put together on every rank; shares differ by one element at most.
class Allgather : public Filled {
 public:
  Allgather(const Dtype& dtype, size_t bytes)
      : Filled(dtype, "bench.allgather"),
        whole_(dtype, CountFor(dtype, bytes)),
        mine_(dtype, Begin(hvd::rank() + 1) - Begin(hvd::rank())) {}
  size_t bytes() const override { return whole_.bytes(); }
  void Run() override {
    ThrowIfError(hvd_allgather(mine_.tensor(), whole_.tensor(), &options_, nullptr));
  }
  void CheckAll() const override {
    for (int rank = 0; rank < hvd::size(); ++rank) {
      for (size_t i = Begin(rank); i < Begin(rank + 1); ++i) whole_.Expect(i, ValueOf(rank, i));
    }
  }
  void CheckEnds() const override {
    for (int rank = 0; rank < hvd::size(); ++rank) {
      if (Begin(rank) == Begin(rank + 1)) continue;
      whole_.Expect(Begin(rank), ValueOf(rank, Begin(rank)));
      whole_.Expect(Begin(rank + 1) - 1, ValueOf(rank, Begin(rank + 1) - 1));
    }
  }
  double bus_factor() const override { return 1.0 * (hvd::size() - 1) / hvd::size(); }

 private:
  // Where a rank's share begins in the whole.
  size_t Begin(int rank) const { return whole_.count() * rank / hvd::size(); }
  void Refill() override {
    FillMine(&mine_, Begin(hvd::rank()));
    whole_.SetAll(kNothing);
  }

  static constexpr double kNothing = 7;  // no pattern's value: an element left alone is found out
  Buffer whole_;
  Buffer mine_;
};

class Broadcast : public Filled {
 public:
  Broadcast(const Dtype& dtype, size_t bytes)
      : Filled(dtype, "bench.broadcast"), data_(dtype, CountFor(dtype, bytes)) {
    options_.root = kRoot;
  }
  size_t bytes() const override { return data_.bytes(); }
  void Run() override { ThrowIfError(hvd_broadcast(data_.tensor(), data_.tensor(), &options_)); }
  void CheckAll() const override {
    for (size_t i = 0; i < data_.count(); ++i) data_.Expect(i, ValueOf(kRoot, i));
  }
  void CheckEnds() const override {
    data_.Expect(0, ValueOf(kRoot, 0));
    data_.Expect(data_.count() - 1, ValueOf(kRoot, data_.count() - 1));
  }
  double bus_factor() const override { return 1; }

 private:
  void Refill() override { FillMine(&data_); }

  Buffer data_;
};

}  // namespace

const std::vector<std::string>& Operations() {
  static const std::vector<std::string> all = {"allreduce", "allgather", "broadcast"};
  return all;
}

std::unique_ptr<Collective> MakeCollective(const std::string& op, const Dtype& dtype,
                                           size_t bytes) {
  if (op == "allreduce") return std::make_unique<Allreduce>(dtype, bytes);
  if (op == "allgather") return std::make_unique<Allgather>(dtype, bytes);
  if (op == "broadcast") return std::make_unique<Broadcast>(dtype, bytes);
  throw std::invalid_argument("no such operation: " + op);
}

}  // namespace bench
