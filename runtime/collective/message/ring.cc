// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/message/ring.h"

#include <algorithm>
#include <utility>

#include "runtime/collective/slices.h"

namespace hvd::rt {
namespace {

// How far sending may be ahead of receiving. A send is done when the transport has taken it, which
// does not show that the right neighbour waits for it; when it does not, soon nobody receives.
constexpr size_t kWindowsAhead = 2;

}  // namespace

RingRun::RingRun(MessageGroup* group, std::unique_ptr<RingPlan> plan, size_t window)
    : group_(group),
      step_(group->step()),
      plan_(std::move(plan)),
      total_(plan_->transfers()),
      window_(std::min(window, kMaxRingWindow)) {}

absl::Status RingRun::Post() {
  const int right = (group_->rank() + 1) % group_->size();
  const int left = (group_->rank() + group_->size() - 1) % group_->size();
  for (; posted_ < total_ && posted_ < received_ + window_; ++posted_) {
    const RingPlan::Buffer to = plan_->Incoming(posted_);
    absl::Status ok =
        group_->Receive({left, step_}, to.data, to.bytes, &receives_[posted_ % window_]);
    if (!ok.ok()) return ok;
  }
  const size_t ahead = std::min(plan_->segments(), kWindowsAhead * window_);
  for (; started_ < total_ && started_ < sent_ + window_ && started_ < received_ + ahead;
       ++started_) {
    const RingPlan::Buffer from = plan_->Outgoing(started_);
    absl::Status ok =
        group_->Send({right, step_}, from.data, from.bytes, &sends_[started_ % window_]);
    if (!ok.ok()) return ok;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> RingRun::Advance() {
  if (absl::Status posted = Post(); !posted.ok()) return posted;
  bool moved = false;
  if (received_ < posted_) {
    const absl::StatusOr<bool> done = group_->TakeIfDone(&receives_[received_ % window_]);
    if (!done.ok()) return done.status();
    if (*done) plan_->Received(received_++);
    moved |= *done;
  }
  if (sent_ < started_) {
    const absl::StatusOr<bool> done = group_->TakeIfDone(&sends_[sent_ % window_]);
    if (!done.ok()) return done.status();
    if (*done) ++sent_;
    moved |= *done;
  }
  if (moved) {  // what that made possible goes on the wire at once
    if (absl::Status posted = Post(); !posted.ok()) return posted;
  }
  return moved;
}

namespace {

using Buffer = RingPlan::Buffer;

Extent Segment(Extent slice, size_t index, size_t segments) {
  const size_t each = (slice.count + segments - 1) / segments;
  const size_t skipped = std::min(slice.count, index * each);
  return {slice.begin + skipped, std::min(each, slice.count - skipped)};
}

// At least two where it is worth it: one travels while the other is reduced. Where there is more
// than a window of them they may be larger: fewer calls of the system for the same bytes.
size_t SegmentsOf(size_t largest_slice_bytes, const RingPace& pace) {
  constexpr size_t kWorthTwo = size_t{32} << 10;
  const size_t segment_bytes =
      std::clamp(largest_slice_bytes / pace.window, pace.segment_bytes, 4 * pace.segment_bytes);
  const size_t segments = (largest_slice_bytes + segment_bytes - 1) / segment_bytes;
  return std::max<size_t>(segments, largest_slice_bytes >= kWorthTwo ? 2 : 1);
}

size_t Largest(const std::vector<Extent>& extents) {
  size_t largest = 0;
  for (const Extent& extent : extents) largest = std::max(largest, extent.count);
  return largest;
}

// A ring over slices, one a rank. Rank r starts with slice (r + first) and goes down from there.
class SlicedPlan : public RingPlan {
 public:
  SlicedPlan(const MessageGroup& group, std::vector<Extent> slices, size_t segments)
      : rank_(group.rank()), size_(group.size()), slices_(std::move(slices)), segments_(segments) {}
  size_t segments() const override { return segments_; }

 protected:
  // Returns the elements that a transfer carries when it leaves a rank `back` to the left of this
  // one.
  Extent ExtentOf(size_t transfer, int back) const {
    const int down = static_cast<int>(transfer / segments_) + back;
    const int slice = ((rank_ - down) % size_ + size_) % size_;
    return Segment(slices_[slice], transfer % segments_, segments_);
  }
  size_t StepTransfers() const { return (size_ - 1) * segments_; }
  // In the first step what comes is a rank's own input, and later a sum, whose addends have been
  // scaled.
  int SumsAmong(size_t transfer) const { return transfer < segments_ ? 0 : 1; }

  int rank_;  // by which slices are counted
  const int size_;
  const std::vector<Extent> slices_;
  const size_t segments_;
};

// Rooms for what arrives and is not the result yet.
class Rooms {
 public:
  Rooms(size_t count, size_t bytes) : bytes_(bytes), memory_(new std::byte[count * bytes]) {}
  std::byte* at(size_t index) const { return memory_.get() + index * bytes_; }

 private:
  const size_t bytes_;
  const std::unique_ptr<std::byte[]> memory_;
};

class AllreducePlan : public SlicedPlan {
 public:
  AllreducePlan(const MessageGroup& group, const MessageReduce& reduce, std::vector<Extent> slices,
                size_t segments, size_t window)
      : SlicedPlan(group, std::move(slices), segments),
        reduce_(reduce),
        window_(window),
        rooms_(std::min(window, StepTransfers()),
               (Largest(slices_) + segments - 1) / segments * reduce.width) {}

  size_t transfers() const override { return 2 * StepTransfers(); }
  // The reducing steps pass rank's own slice first, then what they summed; so do the others, whose
  // first is the finished slice: slice rank - step, all the way round.
  Buffer Outgoing(size_t transfer) const override {
    const Extent extent = ExtentOf(transfer, 0);
    const std::byte* base = transfer < segments_ ? reduce_.input : reduce_.output;
    return {const_cast<std::byte*>(base) + extent.begin * reduce_.width,
            extent.count * reduce_.width};
  }
  Buffer Incoming(size_t transfer) override {
    const Extent extent = ExtentOf(transfer, 1);
    std::byte* to = transfer < StepTransfers() ? rooms_.at(transfer % window_)
                                               : reduce_.output + extent.begin * reduce_.width;
    return {to, extent.count * reduce_.width};
  }
  void Received(size_t transfer) override {
    if (transfer >= StepTransfers()) return;
    const Extent extent = ExtentOf(transfer, 1);
    const size_t offset = extent.begin * reduce_.width;
    const bool is_last = transfer + segments_ >= StepTransfers();
    const void* sources[2] = {rooms_.at(transfer % window_), reduce_.input + offset};
    Combine(reduce_, {sources, SumsAmong(transfer)}, reduce_.output + offset, extent.count,
            is_last ? SumKind::kLast : SumKind::kPartial);
  }

 private:
  const MessageReduce reduce_;
  const size_t window_;
  const Rooms rooms_;
};

// As the first half of an allreduce, one rank further on, so that each ends with its own slice.
// A sum stays in the room that it arrived in until it has been passed on.
class ReduceScatterPlan : public SlicedPlan {
 public:
  ReduceScatterPlan(const MessageGroup& group, const MessageReduce& reduce,
                    std::vector<Extent> slices, size_t segments)
      : SlicedPlan(group, std::move(slices), segments),
        reduce_(reduce),
        rooms_(StepTransfers(), (Largest(slices_) + segments - 1) / segments * reduce.width) {
    rank_ = (rank_ + size_ - 1) % size_;
  }

  size_t transfers() const override { return StepTransfers(); }
  Buffer Outgoing(size_t transfer) const override {
    const Extent extent = ExtentOf(transfer, 0);
    const std::byte* from = transfer < segments_ ? reduce_.input + extent.begin * reduce_.width
                                                 : rooms_.at(transfer - segments_);
    return {const_cast<std::byte*>(from), extent.count * reduce_.width};
  }
  Buffer Incoming(size_t transfer) override {
    return {rooms_.at(transfer), ExtentOf(transfer, 1).count * reduce_.width};
  }
  void Received(size_t transfer) override {
    const Extent extent = ExtentOf(transfer, 1);
    const bool is_last = transfer + segments_ >= StepTransfers();
    const void* sources[2] = {rooms_.at(transfer), reduce_.input + extent.begin * reduce_.width};
    const int own = (rank_ + 1) % size_;
    std::byte* to = is_last ? reduce_.output + (extent.begin - slices_[own].begin) * reduce_.width
                            : rooms_.at(transfer);
    Combine(reduce_, {sources, SumsAmong(transfer)}, to, extent.count,
            is_last ? SumKind::kLast : SumKind::kPartial);
  }

 private:
  const MessageReduce reduce_;
  const Rooms rooms_;
};

class AllgatherPlan : public SlicedPlan {
 public:
  AllgatherPlan(const MessageGroup& group, std::byte* buffer, std::vector<Extent> parts,
                size_t segments)
      : SlicedPlan(group, std::move(parts), segments), buffer_(buffer) {}

  size_t transfers() const override { return StepTransfers(); }
  Buffer Outgoing(size_t transfer) const override { return At(ExtentOf(transfer, 0)); }
  Buffer Incoming(size_t transfer) override { return At(ExtentOf(transfer, 1)); }
  void Received(size_t) override {}

 private:
  Buffer At(Extent extent) const { return {buffer_ + extent.begin, extent.count}; }

  std::byte* const buffer_;
};

}  // namespace

std::unique_ptr<MessageRun> RingAllreduce(MessageGroup* group, const MessageReduce& reduce,
                                          const RingPace& pace) {
  const std::vector<size_t> bounds = EvenSlices(reduce.count, group->size());
  std::vector<Extent> slices;
  for (int i = 0; i < group->size(); ++i) slices.push_back({bounds[i], bounds[i + 1] - bounds[i]});
  const size_t segments = SegmentsOf(Largest(slices) * reduce.width, pace);
  return std::make_unique<RingRun>(
      group,
      std::make_unique<AllreducePlan>(*group, reduce, std::move(slices), segments, pace.window),
      pace.window);
}

std::unique_ptr<MessageRun> RingReduceScatter(MessageGroup* group, const MessageReduce& reduce,
                                              std::vector<Extent> slices, const RingPace& pace) {
  const size_t segments = SegmentsOf(Largest(slices) * reduce.width, pace);
  return std::make_unique<RingRun>(
      group, std::make_unique<ReduceScatterPlan>(*group, reduce, std::move(slices), segments),
      pace.window);
}

std::unique_ptr<MessageRun> RingAllgather(MessageGroup* group, std::byte* buffer,
                                          std::vector<Extent> parts, const RingPace& pace) {
  const size_t segments = SegmentsOf(Largest(parts), pace);
  return std::make_unique<RingRun>(
      group, std::make_unique<AllgatherPlan>(*group, buffer, std::move(parts), segments),
      pace.window);
}

}  // namespace hvd::rt
