// SPDX-License-Identifier: Apache-2.0
// The frame that stands before everything that a proven connection carries. Both ends run the same
// program on the same kind of processor: the bytes are the struct's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/transport/transport.h"

namespace hvd::rt {

enum class FrameKind : uint16_t {
  kSmall = 1,  // a small message: `bytes` of it follow
  kAnnounce,   // a small message that has no credit: `id` is the sender's name for it
  kGrant,    // the receiver waits for `bytes`, as `id`; `offset`: the announcement it answers, or 0
  kChunk,    // `bytes` from `offset` on of the message granted as `id` follow
  kCredit,   // `bytes` of small messages have been taken
  kGoodbye,  // the peer leaves the epoch: what ends the connection after this is no failure
};

struct Frame {
  FrameKind kind = FrameKind::kSmall;
  uint16_t channel = 0;
  uint32_t step = 0;
  uint64_t bytes = 0;
  uint64_t id = 0;
  uint64_t offset = 0;

  MessageTag tag() const { return {channel, step}; }
  bool has_payload() const { return kind == FrameKind::kSmall || kind == FrameKind::kChunk; }
};
static_assert(sizeof(Frame) == 32);

}  // namespace hvd::rt
