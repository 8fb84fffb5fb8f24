// SPDX-License-Identifier: Apache-2.0
// The notice that a rank gives another of a send to it, or of a receive from it, and the sides'
// names. Plain bytes: it travels through shared memory and over the transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>

#include "runtime/engine/request/request.h"

namespace hvd::rt {

enum class PairSide : uint32_t { kSends = 0, kReceives = 1 };
inline PairSide Opposite(PairSide side) {
  return side == PairSide::kSends ? PairSide::kReceives : PairSide::kSends;
}

// Whether the rank asks for it, or only answers that it is away and will not.
enum class PairWord : uint32_t { kAsks = 0, kJoined = 1, kLeft = 2 };

// Which sends and receives belong together: those of one key, in their order.
struct PairKey {
  PairSide side = PairSide::kSends;  // of the rank that says it
  int64_t tag = 0;
  uint32_t own = 0;    // 1: one of hvd's own, with tags of their own
  uint32_t round = 0;  // how many joins of all ranks were over when it was submitted
  bool operator<(const PairKey& other) const {
    return std::tie(tag, side, own, round) <
           std::tie(other.tag, other.side, other.own, other.round);
  }
};

struct PairNotice {
  // A tensor that is so small travels with its notice.
  static constexpr size_t kInlineBytes = 256;

  int32_t set = 0;  // the process set's number: what was said in one that is gone means nothing
  PairWord word = PairWord::kAsks;
  PairKey key;
  uint32_t parcel = 0;  // of a send: by which number the tensor comes
  uint32_t dtype = 0;
  int32_t ndim = 0;
  int64_t shape[kMaxDimensions] = {};
  std::byte data[kInlineBytes] = {};  // of a send that fits

  size_t elements() const;
  size_t bytes() const;
  bool is_inline() const { return bytes() <= kInlineBytes; }
};
static_assert(std::is_trivially_copyable_v<PairNotice>);

// Makes the notice of a request of kind kSend or kReceive, with the tensor, if it fits in.
PairNotice NoticeOf(const Request& request, int32_t set);

// Two notices that met, and the global ranks that gave them.
struct PairMeeting {
  const PairNotice& mine;
  const PairNotice& theirs;
  int my_rank = 0;
  int their_rank = 0;
};
// Why nothing can come of it, in the same words on both ranks; FailedPrecondition when they asked
// for what does not fit or the other has joined, Aborted when it has left.
absl::Status CheckMeeting(const PairMeeting& meeting);

}  // namespace hvd::rt
