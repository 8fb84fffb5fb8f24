// SPDX-License-Identifier: Apache-2.0
// A group's ranks counted host by host: their positions. The operations between hosts work with
// them, since what a host's ranks have then lies together. They are the ranks, unless a launcher
// has numbered these otherwise: then what lies by rank is moved here, before and after.
//
// Threads: one caller at a time, as Collectives.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "hostfile/topology.h"
#include "runtime/collective/collectives.h"
#include "runtime/collective/hierarchical/growing_room.h"

namespace hvd::rt {

class HostOrder {
 public:
  explicit HostOrder(const Topology& by_rank);
  HostOrder(const HostOrder&) = delete;
  HostOrder& operator=(const HostOrder&) = delete;

  const Topology& topology() const { return topology_; }  // of positions
  bool are_ranks() const { return are_ranks_; }
  int position_of(int rank) const { return position_of_[rank]; }
  int rank_at(int position) const { return rank_at_[position]; }

  // `run` with the arguments and buffers by position: `Args` is GatherArgs, AlltoallArgs or
  // ReduceScatterArgs, `run` gets one like it.
  template <class Run>
  absl::Status Allgather(const GatherArgs& args, const Run& run);
  template <class Run>
  absl::Status Alltoall(const AlltoallArgs& args, const Run& run);
  template <class Run>
  absl::Status ReduceScatter(const ReduceScatterArgs& args, const Run& run);

 private:
  std::vector<size_t> ByPosition(absl::Span<const size_t> by_rank) const;
  // Copies what lies by rank so that it lies by position, and back.
  void ToPositions(const std::byte* from, absl::Span<const size_t> bytes_by_rank,
                   std::byte* to) const;
  void ToRanks(const std::byte* from, absl::Span<const size_t> bytes_by_rank, std::byte* to) const;

  const Topology topology_;
  const bool are_ranks_;
  std::vector<int> rank_at_, position_of_;
  GrowingRoom given_, taken_;
};

template <class Run>
absl::Status HostOrder::Allgather(const GatherArgs& args, const Run& run) {
  if (are_ranks_) return run(args);
  const std::vector<size_t> bytes = ByPosition(args.bytes_by_rank);
  size_t all = 0;
  for (const size_t one : bytes) all += one;
  std::byte* const taken = taken_.Take(all);
  absl::Status done = run(GatherArgs{args.input, taken, bytes});
  if (done.ok()) ToRanks(taken, args.bytes_by_rank, static_cast<std::byte*>(args.output));
  return done;
}

template <class Run>
absl::Status HostOrder::Alltoall(const AlltoallArgs& args, const Run& run) {
  if (are_ranks_) return run(args);
  const std::vector<size_t> send = ByPosition(args.send_bytes);
  const std::vector<size_t> receive = ByPosition(args.receive_bytes);
  size_t sent = 0, received = 0;
  for (const size_t bytes : send) sent += bytes;
  for (const size_t bytes : receive) received += bytes;
  std::byte* const given = given_.Take(sent);
  std::byte* const taken = taken_.Take(received);
  ToPositions(static_cast<const std::byte*>(args.input), args.send_bytes, given);
  absl::Status done = run(AlltoallArgs{given, taken, send, receive});
  if (done.ok()) ToRanks(taken, args.receive_bytes, static_cast<std::byte*>(args.output));
  return done;
}

template <class Run>
absl::Status HostOrder::ReduceScatter(const ReduceScatterArgs& args, const Run& run) {
  if (are_ranks_) return run(args);
  std::vector<size_t> bytes_by_rank;
  bytes_by_rank.reserve(args.count_by_rank.size());
  size_t all = 0;
  for (const size_t count : args.count_by_rank) {
    bytes_by_rank.push_back(count * DtypeBytes(args.dtype));
    all += bytes_by_rank.back();
  }
  std::byte* const given = given_.Take(all);
  ToPositions(static_cast<const std::byte*>(args.input), bytes_by_rank, given);
  const std::vector<size_t> counts = ByPosition(args.count_by_rank);
  ReduceScatterArgs by_position = args;
  by_position.input = given;
  by_position.count_by_rank = counts;
  return run(by_position);
}

}  // namespace hvd::rt
