// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/process/origin.h"

#include <cstdlib>
#include <utility>

#include "runtime/adoption/ancestor.h"
#include "runtime/api/process/own_path.h"
#include "runtime/engine/tuning/config.h"

namespace hvd::rt {

absl::Status ProcessOrigin::Adopt() {
  const MutexLock lock(&mutex_);
  if (!std::exchange(tried_, true)) status_ = AdoptLocked();
  return status_;
}

absl::Status ProcessOrigin::AdoptLocked() {
  const std::vector<std::string> environment = ReadEnvironment();
  auto place = FindForeignPlace([](const char* name) { return getenv(name); }, FindAncestor);
  if (!place.ok() || !place->has_value()) return place.status();
  auto adopted = Adopted::Join(**place, {OwnPath(), environment});
  if (!adopted.ok()) return adopted.status();
  adopted_ = *std::move(adopted);
  // How a process ends is its launcher's to know; hvd's daemon hears it from the process itself.
  on_exit([](int code, void* left) { static_cast<Adopted*>(left)->Leave(code); }, adopted_.get());
  return absl::OkStatus();
}

const std::vector<std::string>& ProcessOrigin::environment() const {
  static const std::vector<std::string> none;
  return adopted_ != nullptr ? adopted_->environment() : none;
}

}  // namespace hvd::rt
