// SPDX-License-Identifier: Apache-2.0
#include "proto/page/message_counts.h"

#include <algorithm>

namespace hvd {
namespace {

constexpr int kPeerBits = 20, kChannelBits = 12, kStepBits = 32;
static_assert(kPeerBits + kChannelBits + kStepBits == 64);

uint64_t KeyOf(uint32_t peer, uint32_t channel, uint32_t step) {
  const uint64_t peer_key = (peer + 1) & ((1u << kPeerBits) - 1);
  const uint64_t channel_key = channel & ((1u << kChannelBits) - 1);
  return peer_key << (kChannelBits + kStepBits) | channel_key << kStepBits | step;
}

// A key's few places; which of them is left to the one used longest ago.
constexpr uint32_t kWays = 8;
constexpr int kRowBits = 4;

uint32_t RowOf(uint64_t key) {
  return static_cast<uint32_t>(key * 0x9e3779b97f4a7c15u >> (64 - kRowBits));
}

// The key's place in its row, or the one that it gets; the newest of the row from now on.
template <class Entry>
Entry* TakePlace(Entry* row, uint64_t key) {
  Entry* found = row;
  uint32_t newest = 0;
  for (Entry* entry = row; entry < row + kWays; ++entry) {
    newest = std::max(newest, entry->used);
    const bool has_key = found->key.load(std::memory_order_relaxed) == key;
    if (!has_key && entry->used < found->used) found = entry;
    if (entry->key.load(std::memory_order_relaxed) == key) found = entry;
  }
  if (newest == UINT32_MAX) {  // their order is forgotten once
    for (Entry* entry = row; entry < row + kWays; ++entry) entry->used = 0;
    newest = 0;
  }
  if (found->used != newest || newest == 0) found->used = newest + 1;
  return found;
}

}  // namespace

void MessageCounts::Clear() {
  for (Entry& entry : entries_) entry.key.store(0, std::memory_order_relaxed);
}

void MessageCounts::Count(uint32_t peer, uint32_t channel, uint32_t step, What what) {
  const uint64_t key = KeyOf(peer, channel, step);
  static_assert(kPlaces == kWays << kRowBits);
  Entry& entry = *TakePlace(&entries_[RowOf(key) * kWays], key);
  if (entry.key.load(std::memory_order_relaxed) != key) {
    entry.key.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    for (auto& count : entry.counts) count.store(0, std::memory_order_relaxed);
    entry.key.store(key, std::memory_order_release);
  }
  std::atomic<uint32_t>& count = entry.counts[static_cast<int>(what)];
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

std::vector<MessageCount> MessageCounts::Read() const {
  std::vector<MessageCount> read;
  for (const Entry& entry : entries_) {
    const uint64_t key = entry.key.load(std::memory_order_acquire);
    if (key == 0) continue;
    MessageCount count;
    count.peer = static_cast<uint32_t>(key >> (kChannelBits + kStepBits)) - 1;
    count.channel = static_cast<uint32_t>(key >> kStepBits) & ((1u << kChannelBits) - 1);
    count.step = static_cast<uint32_t>(key);
    // `came` is read before `asked`: otherwise more may seem to have come.
    count.came = entry.counts[2].load(std::memory_order_acquire);
    count.asked = entry.counts[1].load(std::memory_order_acquire);
    count.sent = entry.counts[0].load(std::memory_order_acquire);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (entry.key.load(std::memory_order_relaxed) == key) read.push_back(count);
  }
  return read;
}

}  // namespace hvd
