#include <algorithm>
#include <cstring>

#include "absl/container/inlined_vector.h"
#include "runtime/collective/host_paths.h"

namespace hvd {
namespace {

// What a rank tells its peers of its buffers, in its mark.
struct BufferAddresses {
  uint64_t input = 0;
  uint64_t output = 0;
};

absl::Status ExchangeAddresses(HostGroup& group, const void* input, const void* output,
                               absl::InlinedVector<BufferAddresses, 16>* by_rank) {
  if (absl::Status begun = group.Begin(); !begun.ok()) return begun;
  const BufferAddresses mine{reinterpret_cast<uint64_t>(input), reinterpret_cast<uint64_t>(output)};
  group.PublishMark({reinterpret_cast<const std::byte*>(&mine), sizeof(mine)});
  if (absl::Status all = group.AwaitMarks(); !all.ok()) return all;
  by_rank->resize(group.size());
  for (int peer = 0; peer < group.size(); ++peer) {
    memcpy(&(*by_rank)[peer], group.payload(peer), sizeof(BufferAddresses));
  }
  return absl::OkStatus();
}

// Ends an operation of `rounds` rounds: nobody leaves while its memory is still read.
absl::Status Leave(HostGroup& group, uint64_t rounds) {
  const uint64_t done = group.first_round() + rounds;
  group.Advance(HostGroup::kConsumed, done);
  group.AddRounds(rounds);
  return group.AwaitAll(HostGroup::kConsumed, done);
}

class PeerReadReduction {
 public:
  PeerReadReduction(HostGroup& group, const HostReduce& reduce, const PeerReadOptions& options)
      : group_(group), reduce_(reduce), scratch_(options.scratch) {
    const size_t room = options.scratch_bytes / std::max(1, group.size() - 1) / 64 * 64;
    piece_ =
        std::max(size_t{64}, std::min(options.piece_bytes, room) / 64 * 64) / reduce.element_bytes;
    rounds_ = (reduce.largest_slice() + piece_ - 1) / piece_;
    // Where ranks share cores each wait costs a switch: one wait for all pieces instead.
    lag_ = group.wait_policy().oversubscribed ? rounds_ : std::min<uint64_t>(rounds_, 1);
  }

  absl::Status Run() {
    absl::Status met = ExchangeAddresses(group_, reduce_.input, reduce_.output, &addresses_);
    if (!met.ok()) return met;
    for (uint64_t step = 0; step < rounds_ + lag_; ++step) {
      absl::Status done;
      if (step < rounds_) done = Sum(step);
      if (done.ok() && reduce_.gather && step >= lag_) done = Collect(step - lag_);
      if (!done.ok()) return done;
    }
    return Leave(group_, rounds_);
  }

 private:
  struct Slice {
    size_t offset = 0;  // bytes
    size_t count = 0;   // elements
  };
  Slice SliceOf(int owner, uint64_t round) const {
    const size_t begin = reduce_.bounds[owner] + round * piece_;
    const size_t end = std::min(reduce_.bounds[owner + 1], begin + piece_);
    return {begin * reduce_.element_bytes, begin < end ? end - begin : 0};
  }

  absl::Status Sum(uint64_t round) {
    const int me = group_.rank();
    const Slice slice = SliceOf(me, round);
    if (slice.count > 0) {
      const size_t bytes = slice.count * reduce_.element_bytes;
      absl::InlinedVector<const void*, 16> sources(group_.size());
      std::byte* room = scratch_;
      for (int peer = 0; peer < group_.size(); ++peer) {
        if (peer == me) {
          sources[peer] = reduce_.input + slice.offset;
          continue;
        }
        absl::Status read =
            group_.ReadPeer(peer, addresses_[peer].input + slice.offset, room, bytes);
        if (!read.ok()) return read;
        sources[peer] = room;
        room += piece_ * reduce_.element_bytes;
      }
      void* output = reduce_.own_output(me) + round * piece_ * reduce_.element_bytes;
      reduce_.kernel({.sources = sources.data(),
                      .source_count = group_.size(),
                      .destinations = &output,
                      .destination_count = 1,
                      .count = slice.count,
                      .divisor = reduce_.divisor});
    }
    group_.Advance(HostGroup::kReduced, group_.first_round() + round + 1);
    return absl::OkStatus();
  }

  // A peer that has summed a piece has read this rank's input of it: in place, it may be
  // overwritten now.
  absl::Status Collect(uint64_t round) {
    for (int i = 1; i < group_.size(); ++i) {
      const int owner = (group_.rank() + i) % group_.size();
      const Slice slice = SliceOf(owner, round);
      if (slice.count == 0) continue;
      absl::Status ready =
          group_.Await(HostGroup::kReduced, owner, group_.first_round() + round + 1);
      if (!ready.ok()) return ready;
      absl::Status read =
          group_.ReadPeer(owner, addresses_[owner].output + slice.offset,
                          reduce_.output + slice.offset, slice.count * reduce_.element_bytes);
      if (!read.ok()) return read;
    }
    return absl::OkStatus();
  }

  HostGroup& group_;
  const HostReduce& reduce_;
  std::byte* const scratch_;
  size_t piece_;  // elements
  uint64_t rounds_;
  uint64_t lag_;
  absl::InlinedVector<BufferAddresses, 16> addresses_;
};

}  // namespace

absl::Status PeerReadReduce(HostGroup& group, const HostReduce& reduce,
                            const PeerReadOptions& options) {
  return PeerReadReduction(group, reduce, options).Run();
}

absl::Status PeerReadAllgather(HostGroup& group, const GatherArgs& args) {
  absl::InlinedVector<BufferAddresses, 16> addresses;
  absl::Status met = ExchangeAddresses(group, args.input, args.output, &addresses);
  if (!met.ok()) return met;
  absl::InlinedVector<std::byte*, 16> places(group.size());
  auto* to = static_cast<std::byte*>(args.output);
  for (int peer = 0; peer < group.size(); ++peer) {
    places[peer] = to;
    to += args.bytes_by_rank[peer];
  }
  for (int i = 0; i < group.size(); ++i) {
    const int peer = (group.rank() + i) % group.size();
    const size_t bytes = args.bytes_by_rank[peer];
    if (bytes == 0) continue;
    if (peer == group.rank()) {
      if (places[peer] != args.input) memcpy(places[peer], args.input, bytes);
      continue;
    }
    absl::Status read = group.ReadPeer(peer, addresses[peer].input, places[peer], bytes);
    if (!read.ok()) return read;
  }
  return Leave(group, 1);
}

absl::Status PeerReadBroadcast(HostGroup& group, const BroadcastArgs& args) {
  absl::InlinedVector<BufferAddresses, 16> addresses;
  absl::Status met = ExchangeAddresses(group, args.input, args.output, &addresses);
  if (!met.ok()) return met;
  if (group.rank() != args.root) {
    absl::Status read =
        group.ReadPeer(args.root, addresses[args.root].input, args.output, args.bytes);
    if (!read.ok()) return read;
  } else if (args.output != args.input) {
    memcpy(args.output, args.input, args.bytes);
  }
  return Leave(group, 1);
}

}  // namespace hvd
