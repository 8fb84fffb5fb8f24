// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/pairs/pair_notice.h"

#include <algorithm>
#include <cstring>

#include "runtime/collective/collectives.h"

namespace hvd::rt {
namespace {

// "float32 [4,3]"
std::string Shown(const PairNotice& notice) {
  std::string text = DtypeName(static_cast<hvd_dtype_t>(notice.dtype));
  text += " [";
  for (int d = 0; d < notice.ndim; ++d) {
    text += (d > 0 ? "," : "") + std::to_string(notice.shape[d]);
  }
  return text + "]";
}

absl::Status Away(const PairMeeting& meeting) {
  const PairNotice& theirs = meeting.theirs;
  const bool sends = meeting.mine.key.side == PairSide::kSends;
  std::string text = sends ? "send to rank " : "receive from rank ";
  text += std::to_string(meeting.their_rank) + " (tag " + std::to_string(theirs.key.tag) +
          "): rank " + std::to_string(meeting.their_rank);
  if (theirs.word == PairWord::kLeft) {
    return absl::AbortedError(text + " has called shutdown without it");
  }
  return absl::FailedPreconditionError(
      text + " has joined without it; it sends and receives again when its join has returned");
}

}  // namespace

size_t PairNotice::elements() const {
  size_t count = 1;
  for (int d = 0; d < ndim; ++d) count *= static_cast<size_t>(shape[d]);
  return count;
}

size_t PairNotice::bytes() const {
  return elements() * DtypeBytes(static_cast<hvd_dtype_t>(dtype));
}

PairNotice NoticeOf(const Request& request, int32_t set) {
  const Signature& signature = request.signature;
  PairNotice notice;
  notice.set = set;
  const bool sends = signature.kind == RequestKind::kSend;
  notice.key = {sends ? PairSide::kSends : PairSide::kReceives, request.tag,
                request.own_pair ? 1u : 0u, 0};
  notice.dtype = signature.dtype;
  notice.ndim = signature.ndim;
  std::copy_n(signature.shape.begin(), signature.ndim, notice.shape);
  const bool carries = sends && notice.is_inline() && notice.bytes() > 0;
  if (carries) std::memcpy(notice.data, request.buffers.input, notice.bytes());
  return notice;
}

absl::Status CheckMeeting(const PairMeeting& meeting) {
  if (meeting.theirs.word != PairWord::kAsks) return Away(meeting);
  const PairNotice &mine = meeting.mine, &theirs = meeting.theirs;
  if (mine.dtype == theirs.dtype && mine.elements() == theirs.elements()) return absl::OkStatus();
  const bool i_send = mine.key.side == PairSide::kSends;
  const PairNotice& send = i_send ? mine : theirs;
  const PairNotice& receive = i_send ? theirs : mine;
  const int from = i_send ? meeting.my_rank : meeting.their_rank;
  const int to = i_send ? meeting.their_rank : meeting.my_rank;
  return absl::FailedPreconditionError(
      "send and receive do not fit (tag " + std::to_string(mine.key.tag) + "): rank " +
      std::to_string(from) + " sends " + Shown(send) + ", rank " + std::to_string(to) +
      " receives " + Shown(receive) + "; give both tensors the same dtype and number of elements");
}

}  // namespace hvd::rt
