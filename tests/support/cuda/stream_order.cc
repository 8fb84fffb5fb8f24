// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cuda/stream_order.h"

#include <algorithm>
#include <iterator>

namespace hvd::rt {

uint64_t OrderClock::of(int stream) const {
  const auto found = steps_.find(stream);
  return found == steps_.end() ? 0 : found->second;
}

void OrderClock::Join(const OrderClock& other) {
  for (const auto& [stream, number] : other.steps_) {
    steps_[stream] = std::max(steps_[stream], number);
  }
}

int StreamOrder::AddStream() {
  clocks_[++last_];
  return last_;
}

OrderStep StreamOrder::Enqueue(int stream) {
  OrderClock& clock = clocks_.at(stream);
  clock.Join(host_);
  clock.Advance(stream);
  return {stream, clock.of(stream)};
}

bool StreamOrder::IsBehind(const OrderStep& step, int stream) const {
  return clocks_.at(stream).of(step.stream) >= step.number;
}

void AccessLog::Cut(uint64_t address) {
  auto after = pieces_.upper_bound(address);
  const auto piece = std::prev(after);
  if (piece->first != address) pieces_.emplace_hint(after, address, piece->second);
}

AccessLog::Pieces::iterator AccessLog::From(uint64_t address) {
  Cut(address);
  return pieces_.find(address);
}

std::optional<OrderStep> AccessLog::Note(const OrderStep& step, const Access& access) {
  std::optional<OrderStep> race;
  if (access.bytes == 0) return race;
  Cut(access.address + access.bytes);
  for (auto each = From(access.address);
       each != pieces_.end() && each->first < access.address + access.bytes; ++each) {
    Piece& piece = each->second;
    if (piece.write && !order_->IsBehind(*piece.write, step.stream)) race = piece.write;
    if (!access.writes) {
      piece.reads[step.stream] = step.number;
      continue;
    }
    for (const auto& [stream, number] : piece.reads) {
      const OrderStep read = {stream, number};
      if (!order_->IsBehind(read, step.stream)) race = read;
    }
    piece.write = step;
    piece.reads.clear();
  }
  return race;
}

std::optional<OrderStep> AccessLog::Free(uint64_t address, uint64_t bytes) {
  std::optional<OrderStep> still;
  if (bytes == 0) return still;
  Cut(address + bytes);
  for (auto each = From(address); each != pieces_.end() && each->first < address + bytes; ++each) {
    Piece& piece = each->second;
    if (piece.write && !order_->IsBehindHost(*piece.write)) still = piece.write;
    for (const auto& [stream, number] : piece.reads) {
      const OrderStep read = {stream, number};
      if (!order_->IsBehindHost(read)) still = read;
    }
    piece = Piece();
  }
  return still;
}

}  // namespace hvd::rt
