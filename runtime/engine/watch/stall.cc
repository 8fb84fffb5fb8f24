// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/watch/stall.h"

#include <algorithm>

namespace hvd::rt {
namespace {

// More than an answer has room for, whatever they are called.
constexpr size_t kMostListed = sizeof(PendingArea::text) / 8;

// "grouped allreduce int32 1 tensors with elements [4] sum, float32 2 tensors …": of a group of
// several types all of them.
std::string DescribeWhole(const Request& request) {
  std::string text = Describe(request.signature);
  for (const auto& other : request.course.others) text += ", " + Describe(other->signature);
  return text;
}

}  // namespace

// The same name on both sides.
PendingTensor StallAnswer::DescribePair(const PendingRequest& pending) const {
  const Request& request = *pending.request;
  const bool sends = request.signature.kind == RequestKind::kSend;
  const int64_t mine = GlobalRank(rank_), peer = GlobalRank(request.peer);
  const int64_t from = sends ? mine : peer, to = sends ? peer : mine;
  std::string name = "send from rank " + std::to_string(from) + " to rank " + std::to_string(to);
  // hvd's own are how a set that only its members know is agreed on.
  name += request.own_pair ? " of a process set" : " with tag " + std::to_string(request.tag);
  return {request.course.sequence,
          std::move(name),
          Describe(request.signature),
          {mine, peer},
          pending.moving};
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
      list.tensors.push_back(DescribePair(one));
      continue;
    }
    list.tensors.push_back({one.request->course.sequence,
                            std::string(PlainName(*one.name)),
                            DescribeWhole(*one.request),
                            {}});
  }
  WritePending(list, question, area_);
}

}  // namespace hvd::rt
