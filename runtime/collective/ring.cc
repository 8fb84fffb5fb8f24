#include "runtime/collective/ring.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "runtime/collective/slices.h"

namespace hvd {

absl::Status RunRing(MessageGroup& group, RingPlan& plan) {
  const int right = (group.rank() + 1) % group.size();
  const int left = (group.rank() + group.size() - 1) % group.size();
  const size_t total = plan.transfers();
  MessageGroup::Request sends[kRingWindow];
  MessageGroup::Request receives[kRingWindow];
  size_t posted = 0;    // receives begun
  size_t received = 0;  // and done
  size_t started = 0;   // sends begun
  size_t sent = 0;      // and done
  while (received < total || sent < total) {
    for (; posted < total && posted < received + kRingWindow; ++posted) {
      const RingPlan::Buffer to = plan.Incoming(posted);
      absl::Status ok = group.Receive(left, to.data, to.bytes, &receives[posted % kRingWindow]);
      if (!ok.ok()) return ok;
    }
    for (; started < total && started < sent + kRingWindow && started < received + plan.segments();
         ++started) {
      const RingPlan::Buffer from = plan.Outgoing(started);
      absl::Status ok = group.Send(right, from.data, from.bytes, &sends[started % kRingWindow]);
      if (!ok.ok()) return ok;
    }
    const MessageGroup::Request none;
    MessageGroup::Request* next_receive =
        received < posted ? &receives[received % kRingWindow] : nullptr;
    MessageGroup::Request* next_send = sent < started ? &sends[sent % kRingWindow] : nullptr;
    absl::Status moved = group.AwaitEither(next_receive != nullptr ? *next_receive : none,
                                           next_send != nullptr ? *next_send : none);
    if (!moved.ok()) return moved;
    if (next_receive != nullptr) {
      const absl::StatusOr<bool> done = group.TakeIfDone(next_receive);
      if (!done.ok()) return done.status();
      if (*done) plan.Received(received++);
    }
    if (next_send != nullptr) {
      const absl::StatusOr<bool> done = group.TakeIfDone(next_send);
      if (!done.ok()) return done.status();
      if (*done) ++sent;
    }
  }
  return absl::OkStatus();
}

namespace {

struct Range {
  size_t begin = 0;
  size_t count = 0;
};

Range Segment(Range slice, size_t index, size_t segments) {
  const size_t each = (slice.count + segments - 1) / segments;
  const size_t skipped = std::min(slice.count, index * each);
  return {slice.begin + skipped, std::min(each, slice.count - skipped)};
}

// At least two where it is worth it: one travels while the other is reduced.
size_t SegmentsOf(size_t largest_slice_bytes, size_t segment_bytes) {
  constexpr size_t kWorthTwo = size_t{32} << 10;
  const size_t segments = (largest_slice_bytes + segment_bytes - 1) / segment_bytes;
  return std::max<size_t>(segments, largest_slice_bytes >= kWorthTwo ? 2 : 1);
}

class AllreducePlan : public RingPlan {
 public:
  AllreducePlan(const MessageGroup& group, const RingReduce& reduce)
      : reduce_(reduce),
        rank_(group.rank()),
        size_(group.size()),
        width_(DtypeBytes(reduce.args.dtype)),
        bounds_(EvenSlices(reduce.args.count, size_)) {
    size_t largest = 0;
    for (int i = 0; i < size_; ++i) largest = std::max(largest, bounds_[i + 1] - bounds_[i]);
    segments_ = SegmentsOf(largest * width_, reduce.segment_bytes);
    room_bytes_ = (largest + segments_ - 1) / segments_ * width_;
    rooms_.reset(new std::byte[std::min(kRingWindow, ReducingTransfers()) * room_bytes_]);
  }

  size_t segments() const override { return segments_; }
  size_t transfers() const override { return 2 * ReducingTransfers(); }

  Buffer Outgoing(size_t transfer) const override {
    // The reducing steps pass rank's own slice first, then what they summed; so do the others,
    // whose first is the finished slice: slice rank - step, all the way round.
    const Range range = RangeOf(static_cast<int>(transfer / segments_), transfer);
    const bool is_first = transfer < segments_;
    const std::byte* base = is_first ? static_cast<const std::byte*>(reduce_.args.input) : Output();
    return {const_cast<std::byte*>(base) + range.begin * width_, range.count * width_};
  }
  Buffer Incoming(size_t transfer) override {
    const Range range = IncomingRange(transfer);
    std::byte* to =
        transfer < ReducingTransfers() ? Room(transfer) : Output() + range.begin * width_;
    return {to, range.count * width_};
  }
  void Received(size_t transfer) override {
    if (transfer >= ReducingTransfers()) return;
    const Range range = IncomingRange(transfer);
    if (range.count == 0) return;
    const bool is_last = transfer + segments_ >= ReducingTransfers();
    const auto* own = static_cast<const std::byte*>(reduce_.args.input) + range.begin * width_;
    const void* sources[2] = {Room(transfer), own};
    void* destination = Output() + range.begin * width_;
    reduce_.kernel({.sources = sources,
                    .source_count = 2,
                    .destinations = &destination,
                    .destination_count = 1,
                    .count = range.count,
                    .divisor = is_last ? reduce_.divisor : 1});
  }

 private:
  size_t ReducingTransfers() const { return (size_ - 1) * segments_; }
  std::byte* Output() const { return static_cast<std::byte*>(reduce_.args.output); }
  std::byte* Room(size_t transfer) { return rooms_.get() + transfer % kRingWindow * room_bytes_; }
  // Elements of the slice that is `back` ranks to the left of this one.
  Range RangeOf(int back, size_t transfer) const {
    const int slice = (rank_ - back % size_ + size_) % size_;
    return Segment({bounds_[slice], bounds_[slice + 1] - bounds_[slice]}, transfer % segments_,
                   segments_);
  }
  Range IncomingRange(size_t transfer) const {
    return RangeOf(static_cast<int>(transfer / segments_) + 1, transfer);
  }

  const RingReduce& reduce_;
  const int rank_;
  const int size_;
  const size_t width_;
  const std::vector<size_t> bounds_;
  size_t segments_;
  size_t room_bytes_;
  std::unique_ptr<std::byte[]> rooms_;
};

class AllgatherPlan : public RingPlan {
 public:
  AllgatherPlan(const MessageGroup& group, const GatherArgs& args, size_t segment_bytes)
      : rank_(group.rank()), size_(group.size()), output_(static_cast<std::byte*>(args.output)) {
    size_t begin = 0;
    for (const size_t bytes : args.bytes_by_rank) {
      parts_.push_back({begin, bytes});
      begin += bytes;
    }
    segments_ = SegmentsOf(SumAndLargest(args.bytes_by_rank).second, segment_bytes);
  }
  std::byte* own_place() const { return output_ + parts_[rank_].begin; }

  size_t segments() const override { return segments_; }
  size_t transfers() const override { return (size_ - 1) * segments_; }
  Buffer Outgoing(size_t transfer) const override { return PartOf(0, transfer); }
  Buffer Incoming(size_t transfer) override { return PartOf(1, transfer); }
  void Received(size_t) override {}

 private:
  Buffer PartOf(int more, size_t transfer) const {
    const int back = static_cast<int>(transfer / segments_) + more;
    const Range range =
        Segment(parts_[(rank_ - back % size_ + size_) % size_], transfer % segments_, segments_);
    return {output_ + range.begin, range.count};
  }

  const int rank_;
  const int size_;
  std::byte* const output_;
  std::vector<Range> parts_;
  size_t segments_;
};

}  // namespace

absl::Status RingAllreduce(MessageGroup& group, const RingReduce& reduce) {
  AllreducePlan plan(group, reduce);
  return RunRing(group, plan);
}

absl::Status RingAllgather(MessageGroup& group, const GatherArgs& args, size_t segment_bytes) {
  AllgatherPlan plan(group, args, segment_bytes);
  const size_t mine = args.bytes_by_rank[group.rank()];
  if (mine > 0 && plan.own_place() != args.input) memcpy(plan.own_place(), args.input, mine);
  return RunRing(group, plan);
}

}  // namespace hvd
