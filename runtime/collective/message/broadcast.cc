// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/message/broadcast.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <vector>

namespace hvd::rt {
namespace {

// Ranks are counted from the root.
struct TreePlace {
  int parent = -1;  // -1: the root
  std::vector<int> children;
};

TreePlace PlaceInChain(int number, int size) {
  TreePlace place;
  place.parent = number - 1;
  if (number + 1 < size) place.children.push_back(number + 1);
  return place;
}

// A rank's parent is its number without the lowest set bit; its children are its number with one
// lower bit set.
TreePlace PlaceInTree(int number, int size) {
  TreePlace place;
  place.parent = number == 0 ? -1 : number & (number - 1);
  const int reach = number == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(size)))
                                : (number & -number);
  for (int bit = reach / 2; bit > 0; bit /= 2) {
    if (number + bit < size) place.children.push_back(number + bit);
  }
  return place;
}

class Run : public MessageRun {
 public:
  Run(MessageGroup* group, const MessageBroadcast& broadcast)
      : group_(group), step_(group->step()), broadcast_(broadcast) {
    const int size = group->size();
    const int number = (group->rank() - broadcast.root + size) % size;
    const TreePlace place =
        broadcast.chain ? PlaceInChain(number, size) : PlaceInTree(number, size);
    const auto rank_of = [&](int other) { return (other + broadcast.root) % size; };
    if (place.parent >= 0) parent_ = rank_of(place.parent);
    for (const int child : place.children) children_.push_back(rank_of(child));
    segments_ = (broadcast.bytes + broadcast.segment_bytes - 1) / broadcast.segment_bytes;
    if (place.parent < 0) received_ = posted_ = segments_;
  }

 protected:
  absl::StatusOr<bool> Advance() override {
    bool moved = false;
    for (; posted_ < segments_ && posted_ < received_ + kWindow; ++posted_) {
      absl::Status ok = group_->Receive({parent_, step_}, broadcast_.output + At(posted_),
                                        BytesOf(posted_), &receives_[posted_ % kWindow]);
      if (!ok.ok()) return ok;
      moved = true;
    }
    if (received_ < posted_) {
      const absl::StatusOr<bool> came = group_->TakeIfDone(&receives_[received_ % kWindow]);
      if (!came.ok()) return came;
      if (*came) ++received_;
      moved |= *came;
    }
    while (!sends_.empty()) {
      const absl::StatusOr<bool> gone = group_->TakeIfDone(&sends_.front());
      if (!gone.ok()) return gone;
      if (!*gone) break;
      sends_.pop_front();
      moved = true;
    }
    if (passed_ < received_ && sends_.size() < kWindow * std::max<size_t>(1, children_.size())) {
      if (absl::Status passed = Pass(); !passed.ok()) return passed;
      moved = true;
    }
    return moved;
  }
  bool IsComplete() const override { return passed_ == segments_ && sends_.empty(); }

 private:
  static constexpr size_t kWindow = 4;

  size_t At(size_t segment) const { return segment * broadcast_.segment_bytes; }
  size_t BytesOf(size_t segment) const {
    return std::min(broadcast_.segment_bytes, broadcast_.bytes - At(segment));
  }
  // The next segment to all children.
  absl::Status Pass() {
    const std::byte* from = parent_ < 0 ? broadcast_.source : broadcast_.output;
    for (const int child : children_) {
      absl::Status ok = group_->Send({child, step_}, from + At(passed_), BytesOf(passed_),
                                     &sends_.emplace_back());
      if (!ok.ok()) return ok;
    }
    ++passed_;
    return absl::OkStatus();
  }

  MessageGroup* const group_;
  const uint32_t step_;
  const MessageBroadcast broadcast_;
  int parent_ = -1;
  std::vector<int> children_;
  size_t segments_ = 0;
  size_t posted_ = 0;    // receives begun
  size_t received_ = 0;  // and done
  size_t passed_ = 0;    // segments that the children were sent
  MessageGroup::Request receives_[kWindow];
  std::deque<MessageGroup::Request> sends_;
};

}  // namespace

std::unique_ptr<MessageRun> BroadcastRun(MessageGroup* group, const MessageBroadcast& broadcast) {
  return std::make_unique<Run>(group, broadcast);
}

}  // namespace hvd::rt
