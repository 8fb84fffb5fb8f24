#include "runtime/collective/host/alltoall.h"

#include <algorithm>
#include <cstring>

#include "absl/container/inlined_vector.h"
#include "runtime/collective/slices.h"

namespace hvd {
namespace {

// A rank knows what it sends and gets itself, not what the others do among one another: so all say
// as they arrive how much the most is, with the first piece for each rank on the shelf. Where that
// was all, nothing more is to do; else the rest goes in rounds, as many for all.
class Alltoall {
 public:
  Alltoall(HostGroup& group, const AlltoallArgs& args, const StagedOptions& options)
      : group_(group), args_(args), streams_(options.streams) {
    const auto cut = [&](size_t room) {
      const size_t place = room / (group.size() - 1) / 64 * 64;
      return std::min(place, std::max(size_t{64}, options.piece_bytes / 64 * 64));
    };
    on_shelf_ = cut(HostRegion::kShelfBytes);
    piece_ = cut(group.stage_bytes());
    size_t sent = 0;
    size_t received = 0;
    for (int peer = 0; peer < group.size(); ++peer) {
      sources_.push_back(static_cast<const std::byte*>(args.input) + sent);
      destinations_.push_back(static_cast<std::byte*>(args.output) + received);
      sent += args.send_bytes[peer];
      received += args.receive_bytes[peer];
    }
  }

  absl::Status Run() {
    uint64_t largest = SumAndLargest(args_.send_bytes).second;
    if (absl::Status begun = group_.Begin(); !begun.ok()) return begun;
    Show(group_.shelf(group_.rank()), {0, on_shelf_});
    group_.Arrive({reinterpret_cast<const std::byte*>(&largest), sizeof(largest)});
    CopyOut(destinations_[group_.rank()], sources_[group_.rank()], args_.send_bytes[group_.rank()],
            streams_);
    for (int i = 1; i < group_.size(); ++i) {
      const int peer = (group_.rank() + i) % group_.size();
      if (absl::Status shown = group_.AwaitArrival(peer); !shown.ok()) return shown;
      uint64_t theirs = 0;
      memcpy(&theirs, group_.payload(peer), sizeof(theirs));
      largest = std::max(largest, theirs);
      Fetch(peer, group_.shelf(peer), {0, on_shelf_});
    }
    return largest <= on_shelf_ ? absl::OkStatus() : RunRounds(largest - on_shelf_);
  }

 private:
  // Bytes of what one rank sends another; more than there is means up to the end.
  struct Range {
    size_t begin = 0;
    size_t count = 0;
    size_t Of(size_t all) const { return begin < all ? std::min(count, all - begin) : 0; }
  };

  absl::Status RunRounds(size_t largest) {
    const uint64_t rounds = (largest + piece_ - 1) / piece_;
    for (uint64_t step = 0; step <= rounds; ++step) {
      const uint64_t round = group_.first_round() + step;
      if (step < rounds) {
        if (absl::Status free = group_.AwaitCopyStage(round); !free.ok()) return free;
        Show(group_.copy_stage(group_.rank(), round), {on_shelf_ + step * piece_, piece_});
        group_.Advance(HostGroup::kStaged, round + 1);
      }
      if (step == 0) continue;
      for (int i = 1; i < group_.size(); ++i) {
        const int peer = (group_.rank() + i) % group_.size();
        absl::Status shown = group_.Await(HostGroup::kStaged, peer, round);
        if (!shown.ok()) return shown;
        Fetch(peer, group_.copy_stage(peer, round - 1), {on_shelf_ + (step - 1) * piece_, piece_});
      }
      group_.Advance(HostGroup::kDone, round);
    }
    group_.AddRounds(rounds);
    return absl::OkStatus();
  }

  // Where `shower` shows `reader` its part.
  size_t Place(int shower, int reader, size_t piece) const {
    return (reader < shower ? reader : reader - 1) * piece;
  }
  void Show(std::byte* room, Range range) const {
    for (int peer = 0; peer < group_.size(); ++peer) {
      if (peer == group_.rank()) continue;
      CopyOut(room + Place(group_.rank(), peer, range.count), sources_[peer] + range.begin,
              range.Of(args_.send_bytes[peer]), false);
    }
  }
  void Fetch(int peer, const std::byte* room, Range range) const {
    CopyOut(destinations_[peer] + range.begin, room + Place(peer, group_.rank(), range.count),
            range.Of(args_.receive_bytes[peer]), streams_);
  }

  HostGroup& group_;
  const AlltoallArgs& args_;
  const bool streams_;
  size_t on_shelf_;  // bytes for each rank on the shelf
  size_t piece_;     // in a stage
  absl::InlinedVector<const std::byte*, 16> sources_;
  absl::InlinedVector<std::byte*, 16> destinations_;
};

}  // namespace

absl::Status StagedAlltoall(HostGroup& group, const AlltoallArgs& args,
                            const StagedOptions& options) {
  return Alltoall(group, args, options).Run();
}

}  // namespace hvd
