#include "runtime/engine/stall.h"

#include <algorithm>

namespace hvd {
namespace {

// More than an answer has room for, whatever they are called.
constexpr size_t kMostListed = sizeof(PendingArea::text) / 8;

}  // namespace

void StallAnswer::Give(std::vector<PendingRequest> pending) {
  const uint32_t question = page_->question.load(std::memory_order_relaxed);
  std::sort(pending.begin(), pending.end(),
            [](const auto& a, const auto& b) { return a.request->sequence < b.request->sequence; });
  PendingList list;
  list.set = set_;
  list.members = members_;
  for (const PendingRequest& one : pending) {
    // Waiting for the others' end is no stall.
    const RequestKind kind = one.request->signature.kind;
    if (kind == RequestKind::kJoin) list.joined = true;
    if (kind == RequestKind::kJoin || kind == RequestKind::kLeave) continue;
    if (list.tensors.size() > kMostListed) continue;
    list.tensors.push_back({one.request->sequence, std::string(PlainName(*one.name)),
                            Describe(one.request->signature)});
  }
  WritePending(list, question, area_);
}

}  // namespace hvd
