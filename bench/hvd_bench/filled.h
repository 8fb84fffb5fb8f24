// SPDX-License-Identifier: Apache-2.0
// The common part of the collectives under measurement: two ways to fill, two ways to call.
#pragma once

#include <memory>
#include <string>

#include "bench/hvd_bench/collective.h"

namespace bench {

// In both fills the value depends on the rank; in the second it does not depend on the place.
class Filled : public Collective {
 public:
  explicit Filled(const Plan& plan);
  size_t bytes() const override { return count_ * dtype_.bytes; }
  void FillPattern() override;
  void FillAlike() override;
  void Run() override;
  void Begin() override;
  void End() override;
  void WaitOnHost(bool waits) override;

 protected:
  static constexpr double kNothing = 7;  // no pattern's value: an element left alone is found out

  virtual void Refill() = 0;
  virtual hvd_status_t Call() = 0;
  virtual hvd_status_t Submit(hvd_handle_t* handle) = 0;

  size_t count() const { return count_; }
  double ValueOf(int rank, size_t index) const { return Pattern(rank, alike_ ? 0 : index); }
  double SumOf(size_t index) const;
  double Others() const;  // the other ranks' share of all
  // This rank's values into `buffer`, whose first element has the place `first` in the whole.
  void FillMine(Buffer* buffer, size_t first = 0) const;

  hvd_options_t options_ = HVD_OPTIONS_INIT;

 private:
  const int rank_, size_;
  Dtype dtype_;
  size_t count_;
  bool alike_ = false, async_;
  std::string name_;
  hvd_handle_t handle_ = 0;
};

std::unique_ptr<Collective> MakeReduceScatter(const Plan& plan);
std::unique_ptr<Collective> MakeAlltoall(const Plan& plan);
std::unique_ptr<Collective> MakeBarrier(const Plan& plan);

}  // namespace bench
