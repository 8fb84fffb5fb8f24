#include "runtime/collective/message_collectives.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/collective/ring.h"
#include "runtime/collective/slices.h"

namespace hvd {

absl::Status MessageCollectives::Allreduce(const ReduceArgs& args, int divisor) {
  if (absl::Status begun = group_.Begin(); !begun.ok()) return begun;
  const ReduceKernel kernel = FindReduceKernel(args.dtype, args.op, BestKernelLevel());
  if (kernel == nullptr) return absl::InvalidArgumentError("bool has no average; use MIN or MAX");
  if (args.op != HVD_AVERAGE) divisor = 1;
  if (args.count == 0) return absl::OkStatus();
  const size_t bytes = args.count * DtypeBytes(args.dtype);
  if (size() > 1 && bytes >= thresholds_.ring_bytes) {
    return RingAllreduce(group_, {args, kernel, divisor, thresholds_.segment_bytes});
  }
  if (size() > 1) return DoubleRecursively(args, kernel, divisor);
  const void* source = args.input;
  void* destination = args.output;
  kernel({&source, 1, &destination, 1, args.count, divisor});
  return absl::OkStatus();
}

// Ranks from the largest power of two on first add to a rank below it, and are told the result.
absl::Status MessageCollectives::DoubleRecursively(const ReduceArgs& args, ReduceKernel kernel,
                                                   int divisor) {
  const size_t bytes = args.count * DtypeBytes(args.dtype);
  const int doubling = static_cast<int>(std::bit_floor(static_cast<unsigned>(size())));
  room_.resize(bytes);
  if (args.output != args.input) memcpy(args.output, args.input, bytes);
  MessageGroup::Request request;
  if (rank() >= doubling) {
    absl::Status ok = group_.Send(rank() - doubling, args.output, bytes, &request);
    if (ok.ok()) ok = group_.Await(&request);
    if (ok.ok()) ok = group_.Receive(rank() - doubling, args.output, bytes, &request);
    return ok.ok() ? group_.Await(&request) : ok;
  }
  const bool has_extra = rank() + doubling < size();
  if (has_extra) {
    absl::Status ok = group_.Receive(rank() + doubling, room_.data(), bytes, &request);
    if (ok.ok()) ok = group_.Await(&request);
    if (!ok.ok()) return ok;
    const void* sources[2] = {args.output, room_.data()};
    void* destination = args.output;
    kernel({sources, 2, &destination, 1, args.count, 1});
  }
  for (int distance = 1; distance < doubling; distance *= 2) {
    const bool is_last = distance * 2 == doubling;
    absl::Status ok = ExchangeAndReduce(args, kernel, rank() ^ distance, is_last ? divisor : 1);
    if (!ok.ok()) return ok;
  }
  if (!has_extra) return absl::OkStatus();
  absl::Status ok = group_.Send(rank() + doubling, args.output, bytes, &request);
  return ok.ok() ? group_.Await(&request) : ok;
}

absl::Status MessageCollectives::ExchangeAndReduce(const ReduceArgs& args, ReduceKernel kernel,
                                                   int peer, int divisor) {
  MessageGroup::Request receive;
  MessageGroup::Request send;
  absl::Status ok = group_.Receive(peer, room_.data(), room_.size(), &receive);
  if (ok.ok()) ok = group_.Send(peer, args.output, room_.size(), &send);
  if (ok.ok()) ok = group_.Await(&receive);
  if (ok.ok()) ok = group_.Await(&send);
  if (!ok.ok()) return ok;
  const void* sources[2] = {args.output, room_.data()};
  if (peer < rank()) std::swap(sources[0], sources[1]);
  void* destination = args.output;
  kernel({sources, 2, &destination, 1, args.count, divisor});
  return absl::OkStatus();
}

absl::Status MessageCollectives::Allgather(const GatherArgs& args) {
  if (absl::Status begun = group_.Begin(); !begun.ok()) return begun;
  if (SumAndLargest(args.bytes_by_rank).first == 0) return absl::OkStatus();
  return RingAllgather(group_, args, thresholds_.segment_bytes);
}

// Ranks are counted from the root. A rank's parent is its number without the lowest set bit; its
// children are its number with one lower bit set. Segments follow one another down the tree.
absl::Status MessageCollectives::Broadcast(const BroadcastArgs& args) {
  if (absl::Status begun = group_.Begin(); !begun.ok()) return begun;
  const int number = (rank() - args.root + size()) % size();
  const int reach = number == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(size())))
                                : (number & -number);
  const auto rank_of = [&](int other) { return (other + args.root) % size(); };
  const size_t segment = thresholds_.segment_bytes;
  const size_t segments = (args.bytes + segment - 1) / segment;
  auto* output = static_cast<std::byte*>(args.output);
  const std::byte* source = number == 0 ? static_cast<const std::byte*>(args.input) : output;
  if (number == 0 && output != source && args.bytes > 0) memcpy(output, source, args.bytes);

  std::vector<MessageGroup::Request> receives(number == 0 ? 0 : segments);
  for (size_t i = 0; i < receives.size(); ++i) {
    const size_t bytes = std::min(segment, args.bytes - i * segment);
    absl::Status ok =
        group_.Receive(rank_of(number & (number - 1)), output + i * segment, bytes, &receives[i]);
    if (!ok.ok()) return ok;
  }
  std::vector<MessageGroup::Request> sends;
  for (size_t i = 0; i < segments; ++i) {
    if (number != 0) {
      if (absl::Status came = group_.Await(&receives[i]); !came.ok()) return came;
    }
    const size_t bytes = std::min(segment, args.bytes - i * segment);
    for (int bit = reach / 2; bit > 0; bit /= 2) {
      if (number + bit >= size()) continue;
      absl::Status ok =
          group_.Send(rank_of(number + bit), source + i * segment, bytes, &sends.emplace_back());
      if (!ok.ok()) return ok;
    }
  }
  for (MessageGroup::Request& send : sends) {
    if (absl::Status gone = group_.Await(&send); !gone.ok()) return gone;
  }
  return absl::OkStatus();
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

}  // namespace hvd
