// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/message/message_collectives.h"

#include <algorithm>

#include "runtime/collective/kernels/copy.h"
#include "runtime/collective/message/doubling.h"
#include "runtime/collective/message/exchange.h"
#include "runtime/collective/message/owner.h"
#include "runtime/collective/message/pipeline.h"
#include "runtime/collective/message/wide_reduction.h"
#include "runtime/collective/slices.h"
#include "runtime/collective/tensor_view.h"

namespace hvd::rt {
namespace {

// A group of one: the same arithmetic as among many.
void ReduceAlone(const MessageReduce& reduce) {
  const void* source = reduce.input;
  void* destination = reduce.output;
  if (reduce.count > 0) {
    reduce.kernel({.sources = &source,
                   .source_count = 1,
                   .destinations = &destination,
                   .destination_count = 1,
                   .count = reduce.count,
                   .divisor = reduce.divisor,
                   .prescale = reduce.prescale,
                   .postscale = reduce.postscale});
  }
}

}  // namespace

absl::Status MessageCollectives::Allreduce(const ReduceArgs& args) {
  if (absl::Status alive = group_.waiter()->Check(); !alive.ok()) return alive;
  if (size() > 1 && TravelsWide(args.op, args.dtype)) return ReduceWide(args, this);
  absl::StatusOr<MessageReduce> reduce = ReductionOf(args, size());
  if (!reduce.ok()) return reduce.status();
  const TensorView view(args);
  reduce->count = view.count();
  if (reduce->count == 0) return absl::OkStatus();
  if (view.parts().size() == 1) {
    reduce->input = static_cast<const std::byte*>(view.parts()[0].input);
    reduce->output = static_cast<std::byte*>(view.parts()[0].output);
    return AllreduceBuffer(*reduce);
  }
  packed_.resize(reduce->bytes());
  view.CopyIn(0, reduce->count, packed_.data());
  reduce->input = reduce->output = packed_.data();
  absl::Status done = AllreduceBuffer(*reduce);
  if (done.ok()) view.CopyOut(packed_.data(), 0, reduce->count);
  return done;
}

absl::Status MessageCollectives::AllreduceBuffer(const MessageReduce& reduce) {
  if (size() == 1) {
    ReduceAlone(reduce);
    return absl::OkStatus();
  }
  const bool one_shot =
      reduce.bytes() <= thresholds_.one_shot_bytes && size() <= thresholds_.one_shot_ranks;
  if (!one_shot && !thresholds_.deterministic && reduce.bytes() < thresholds_.ring_bytes) {
    if (absl::Status begun = group_.Begin(); !begun.ok()) return begun;
    return DoublingAllreduce(&group_, reduce, &room_);
  }
  return AllreduceInChunks(reduce);
}

// The ring needs no chunks; the owners' rooms are bounded by them.
absl::Status MessageCollectives::AllreduceInChunks(const MessageReduce& reduce) {
  const size_t chunk_bytes = thresholds_.deterministic ? thresholds_.chunk_bytes : SIZE_MAX;
  const Chunks chunks(reduce.count, chunk_bytes / reduce.width);
  const Company company = chunks.size() == 1 ? Company::kAlone : Company::kPiped;
  return RunPipeline(group_.waiter(), {.chunks = chunks.size(), .across = [&](size_t chunk) {
                                         MessageReduce part = reduce;
                                         part.input += chunks.begin(chunk) * reduce.width;
                                         part.output += chunks.begin(chunk) * reduce.width;
                                         part.count = chunks.count(chunk);
                                         return StartAllreduce(part, company);
                                       }});
}

MessageCollectives::Started MessageCollectives::StartAllreduce(const MessageReduce& reduce,
                                                               Company company) {
  if (absl::Status begun = group_.Begin(); !begun.ok()) return begun;
  if (reduce.bytes() <= thresholds_.one_shot_bytes && size() <= thresholds_.one_shot_ranks) {
    return OneShotAllreduce(&group_, reduce);
  }
  if (thresholds_.deterministic) return OwnerAllreduce(&group_, reduce);
  return RingAllreduce(&group_, reduce, PaceIn(company));
}

absl::Status MessageCollectives::ReduceScatter(const ReduceScatterArgs& args) {
  if (absl::Status alive = group_.waiter()->Check(); !alive.ok()) return alive;
  if (size() > 1 && TravelsWide(args.op, args.dtype)) return ReduceWide(args, this);
  absl::StatusOr<MessageReduce> reduce = ReductionOf(args, size());
  if (!reduce.ok()) return reduce.status();
  std::vector<Extent> slices;
  for (const size_t count : args.count_by_rank) {
    slices.push_back({reduce->count, count});
    reduce->count += count;
  }
  reduce->input = static_cast<const std::byte*>(args.input);
  reduce->output = static_cast<std::byte*>(args.output);
  if (reduce->count == 0) return absl::OkStatus();
  if (size() == 1) {
    ReduceAlone(*reduce);
    return absl::OkStatus();
  }
  auto run = StartReduceScatter(*reduce, std::move(slices), Company::kAlone);
  return run.ok() ? Finish(group_.waiter(), run->get()) : run.status();
}

MessageCollectives::Started MessageCollectives::StartReduceScatter(const MessageReduce& reduce,
                                                                   std::vector<Extent> slices,
                                                                   Company company) {
  if (absl::Status begun = group_.Begin(); !begun.ok()) return begun;
  if (thresholds_.deterministic) return OwnerReduceScatter(&group_, reduce, std::move(slices));
  return RingReduceScatter(&group_, reduce, std::move(slices), PaceIn(company));
}

absl::Status MessageCollectives::Allgather(const GatherArgs& args) {
  if (absl::Status alive = group_.waiter()->Check(); !alive.ok()) return alive;
  std::vector<Extent> parts;
  size_t total = 0;
  for (const size_t bytes : args.bytes_by_rank) {
    parts.push_back({total, bytes});
    total += bytes;
  }
  if (total == 0) return absl::OkStatus();
  auto* output = static_cast<std::byte*>(args.output);
  const Extent mine = parts[rank()];
  if (mine.count > 0 && output + mine.begin != args.input) {
    CopyBytes(output + mine.begin, args.input, mine.count);
  }
  if (size() == 1) return absl::OkStatus();
  auto run = StartAllgather(output, std::move(parts), Company::kAlone);
  return run.ok() ? Finish(group_.waiter(), run->get()) : run.status();
}

MessageCollectives::Started MessageCollectives::StartAllgather(std::byte* buffer,
                                                               std::vector<Extent> parts,
                                                               Company company) {
  if (absl::Status begun = group_.Begin(); !begun.ok()) return begun;
  const auto small = [&](const Extent& part) { return part.count <= thresholds_.one_shot_bytes; };
  if (size() > thresholds_.one_shot_ranks || !std::all_of(parts.begin(), parts.end(), small)) {
    return RingAllgather(&group_, buffer, std::move(parts), PaceIn(company));
  }
  std::vector<ExchangePart> exchange;
  const Extent mine = parts[rank()];
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    exchange.push_back(
        {peer, buffer + mine.begin, mine.count, buffer + parts[peer].begin, parts[peer].count});
  }
  return Exchange(&group_, std::move(exchange));
}

absl::Status MessageCollectives::Alltoall(const AlltoallArgs& args) {
  if (absl::Status alive = group_.waiter()->Check(); !alive.ok()) return alive;
  size_t sent_at = 0;
  size_t received_at = 0;
  std::vector<int> peers;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank()) peers.push_back(peer);
    if (peer >= rank()) continue;
    sent_at += args.send_bytes[peer];
    received_at += args.receive_bytes[peer];
  }
  if (args.send_bytes[rank()] > 0) {
    CopyBytes(static_cast<std::byte*>(args.output) + received_at,
              static_cast<const std::byte*>(args.input) + sent_at, args.send_bytes[rank()]);
  }
  auto run = StartAlltoall(args, peers);
  return run.ok() ? Finish(group_.waiter(), run->get()) : run.status();
}

MessageCollectives::Started MessageCollectives::StartAlltoall(const AlltoallArgs& args,
                                                              const std::vector<int>& peers) {
  if (absl::Status begun = group_.Begin(); !begun.ok()) return begun;
  std::vector<ExchangePart> all(size());
  const auto* from = static_cast<const std::byte*>(args.input);
  auto* to = static_cast<std::byte*>(args.output);
  for (int peer = 0; peer < size(); ++peer) {
    all[peer] = {peer, from, args.send_bytes[peer], to, args.receive_bytes[peer]};
    from += args.send_bytes[peer];
    to += args.receive_bytes[peer];
  }
  std::vector<ExchangePart> chosen;
  for (const int peer : peers) chosen.push_back(all[peer]);
  return Exchange(&group_, std::move(chosen));
}

absl::Status MessageCollectives::Broadcast(const BroadcastArgs& args) {
  if (absl::Status alive = group_.waiter()->Check(); !alive.ok()) return alive;
  if (rank() == args.root && args.output != args.input && args.bytes > 0) {
    CopyBytes(args.output, args.input, args.bytes);
  }
  auto run = StartBroadcast(args);
  return run.ok() ? Finish(group_.waiter(), run->get()) : run.status();
}

MessageCollectives::Started MessageCollectives::StartBroadcast(const BroadcastArgs& args) {
  if (absl::Status begun = group_.Begin(); !begun.ok()) return begun;
  return BroadcastRun(&group_, {.source = static_cast<const std::byte*>(args.input),
                                .output = static_cast<std::byte*>(args.output),
                                .bytes = args.bytes,
                                .root = args.root,
                                .chain = args.bytes >= thresholds_.chain_bytes,
                                .segment_bytes = thresholds_.segment_bytes});
}

// In round k every rank tells the one 2^k to its right, and hears from the one 2^k to its left.
absl::Status MessageCollectives::Barrier() {
  if (absl::Status begun = group_.Begin(); !begun.ok()) return begun;
  for (int distance = 1; distance < size(); distance *= 2) {
    MessageGroup::Request receive;
    MessageGroup::Request send;
    const int left = (rank() - distance + size()) % size();
    absl::Status ok = group_.Receive(left, nullptr, 0, &receive);
    if (ok.ok()) ok = group_.Send((rank() + distance) % size(), nullptr, 0, &send);
    if (ok.ok()) ok = group_.Await(&receive);
    if (ok.ok()) ok = group_.Await(&send);
    if (!ok.ok()) return ok;
  }
  return absl::OkStatus();
}

}  // namespace hvd::rt
