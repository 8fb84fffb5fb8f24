// SPDX-License-Identifier: Apache-2.0
// Which way a process set's GPU tensors go in an epoch: by NCCL, or by way of the host. Every rank
// says what it has, and all come to the same. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include "absl/strings/string_view.h"

#include "absl/types/span.h"
#include "runtime/engine/tuning/config.h"

namespace hvd::rt {

using GpuOperations = EngineConfig::GpuOperations;  // the same on all ranks

// The vote of one rank. Plain bytes: it travels between hosts.
struct SetVote {
  int32_t nccl_version = 0;   // 0: it has none, and `why_not` says why
  int32_t host = 0;           // its number in the job
  int32_t has_joined = 0;     // 1: it has joined, or is about to: it brings nothing
  int32_t in_several = 0;     // 1: it is a member of other process sets, too
  int32_t has_unordered = 0;  // 1: another set of its uses NCCL, and keeps no order with others
  int32_t shares = 0;         // 1: several ranks may use a GPU together, as it has told NCCL
  std::array<uint8_t, 16> gpu = {};  // its UUID
  std::array<char, 176> why_not = {};

  void SetWhyNot(absl::string_view why);
};

struct SetWay {
  enum class Kind { kHost, kNccl, kRefused };
  Kind kind = Kind::kHost;
  std::string why;       // of the host's way, or of the refusal: one line
  bool ordered = false;  // its launches keep one order with those of other sets
};

// `ranks`: the voters' numbers in the job, in the same order.
SetWay DecideWay(GpuOperations asked, absl::Span<const SetVote> votes, absl::Span<const int> ranks);

}  // namespace hvd::rt
