// SPDX-License-Identifier: Apache-2.0
#include "bench/hvd_bench/filled.h"

#include <algorithm>

#include "hvd/hvd.hpp"

namespace bench {

Filled::Filled(const Plan& plan)
    : rank_(hvd::rank()),
      size_(hvd::size()),
      dtype_(plan.dtype),
      count_(std::max<size_t>(1, plan.bytes / plan.dtype.bytes)),
      async_(plan.async),
      name_(plan.named ? "bench." + plan.op : "") {
  options_.name = name_.c_str();
  if (plan.memory == Memory::kGpu) options_.flags = HVD_WAIT_ON_HOST;
}

void Filled::FillPattern() {
  alike_ = false;
  Refill();
}

void Filled::FillAlike() {
  alike_ = true;
  Refill();
}

void Filled::Run() {
  if (!async_) return ThrowIfError(Call());
  Begin();
  End();
}

void Filled::Begin() { ThrowIfError(Submit(&handle_)); }
void Filled::WaitOnHost(bool waits) { options_.flags = waits ? HVD_WAIT_ON_HOST : 0; }
void Filled::End() { ThrowIfError(hvd_wait(handle_)); }

double Filled::SumOf(size_t index) const { return PatternSum(dtype_, size_, alike_ ? 0 : index); }

double Filled::Others() const { return 1.0 * (size_ - 1) / size_; }

void Filled::FillMine(Buffer* buffer, size_t first) const {
  if (alike_) return buffer->SetAll(ValueOf(rank_, 0));
  buffer->SetEach([&](size_t i) { return ValueOf(rank_, first + i); });
}

}  // namespace bench
