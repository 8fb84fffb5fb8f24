// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/watch/stall.h"

#include <algorithm>

namespace hvd {
namespace {

// More than an answer has room for, whatever they are called.
constexpr size_t kMostListed = sizeof(PendingArea::text) / 8;

}  // namespace

// The same name on both sides.
PendingTensor StallAnswer::DescribePair(const Request& request) const {
  const bool sends = request.signature.kind == RequestKind::kSend;
  const int64_t mine = GlobalRank(rank_), peer = GlobalRank(request.peer);
  const int64_t from = sends ? mine : peer, to = sends ? peer : mine;
  std::string name = "send from rank " + std::to_string(from) + " to rank " + std::to_string(to);
  // hvd's own are how a set that only its members know is agreed on.
  name += request.own_pair ? " of a process set" : " with tag " + std::to_string(request.tag);
  return {request.course.sequence, std::move(name), Describe(request.signature), {mine, peer}};
}

void StallAnswer::Give(std::vector<PendingRequest> pending) {
  const uint32_t question = page_->question.load(std::memory_order_relaxed);
  std::sort(pending.begin(), pending.end(), [](const auto& a, const auto& b) {
    return a.request->course.sequence < b.request->course.sequence;
  });
  PendingList list;
  list.set = set_;
  list.members = members_;
  for (const PendingRequest& one : pending) {
    // Waiting for the others' end is no stall.
    const RequestKind kind = one.request->signature.kind;
    if (kind == RequestKind::kJoin) list.joined = true;
    if (kind == RequestKind::kJoin || kind == RequestKind::kLeave) continue;
    if (list.tensors.size() > kMostListed) continue;
    if (one.name == nullptr) {
      list.tensors.push_back(DescribePair(*one.request));
      continue;
    }
    list.tensors.push_back({one.request->course.sequence,
                            std::string(PlainName(*one.name)),
                            Describe(one.request->signature),
                            {}});
  }
  WritePending(list, question, area_);
}

}  // namespace hvd
