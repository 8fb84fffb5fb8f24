// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/direct/numbers.h"

#include "runtime/engine/agreement/board/shared_lock.h"
#include "runtime/engine/direct/mix.h"

namespace hvd::rt {
namespace {

constexpr uint32_t kBuckets = 1024;

uint64_t HashText(std::string_view text, uint64_t seed) {
  uint64_t hash = MixDirect(seed, text.size());
  for (const char c : text) hash = MixDirect(hash, static_cast<unsigned char>(c));
  return hash;
}

}  // namespace

struct DirectNumbers::Table {
  alignas(64) std::atomic<uint32_t> lock;
  uint32_t used;                // numbers that names have ever had
  uint32_t first_free;          // of those, by Name::next; 0: none
  std::atomic<uint32_t> bound;  // to names, now; changes under the lock
  std::atomic<bool> was_full;   // stays
  struct Name {
    uint64_t hash_a, hash_b;
    uint32_t next;        // in its bucket, or of those that are free
    uint32_t user_count;  // ranks that have asked for it and have not given it up, and which
    uint64_t users[kMaxLocalRanks / 64];
    void Add(int rank) {
      const uint64_t bit = uint64_t{1} << (rank % 64);
      if ((users[rank / 64] & bit) == 0) ++user_count;
      users[rank / 64] |= bit;
    }
  } names[kNames + 1];
  uint32_t buckets[kBuckets];
  // By number: the round, and one, in which the next use goes by the board; 0: none.
  std::atomic<uint64_t> by_board[kNames + 1];
};

size_t DirectNumbers::Bytes() { return sizeof(Table); }

DirectNumbers::Hashes DirectNumbers::HashesOf(std::string_view name) {
  return {HashText(name, 0x243f6a8885a308d3ull), HashText(name, 0x13198a2e03707344ull)};
}

// A name is its two hashes.
uint32_t DirectNumbers::FindLocked(const Hashes& name) const {
  uint32_t number = table_->buckets[name.a % kBuckets];
  while (number != 0) {
    const Table::Name& found = table_->names[number];
    if (found.hash_a == name.a && found.hash_b == name.b) break;
    number = found.next;
  }
  return number;
}

uint32_t DirectNumbers::BindLocked(const Hashes& name) {
  uint32_t number = table_->first_free;
  if (number != 0) {
    table_->first_free = table_->names[number].next;
  } else if (table_->used < kNames) {
    number = ++table_->used;
  } else {
    return 0;
  }
  uint32_t& bucket = table_->buckets[name.a % kBuckets];
  table_->names[number] = {name.a, name.b, bucket, 0, {}};
  table_->by_board[number].store(0, std::memory_order_relaxed);
  bucket = number;
  table_->bound.fetch_add(1, std::memory_order_relaxed);
  return number;
}

uint32_t DirectNumbers::Number(std::string_view name) {
  const Hashes hashes = HashesOf(name);
  SharedLock lock(&table_->lock, place_.page);
  if (!lock.held()) return 0;
  uint32_t number = FindLocked(hashes);
  if (number == 0 && !table_->was_full.load(std::memory_order_relaxed)) {
    number = BindLocked(hashes);
    if (number == 0) table_->was_full.store(true, std::memory_order_relaxed);
  }
  if (number != 0) table_->names[number].Add(place_.index);
  return number;
}

uint32_t DirectNumbers::Bind(std::string_view name) {
  if (table_->bound.load(std::memory_order_relaxed) == kNames) return 0;
  const Hashes hashes = HashesOf(name);
  SharedLock lock(&table_->lock, place_.page);
  if (!lock.held()) return 0;
  uint32_t number = FindLocked(hashes);
  if (number == 0) number = BindLocked(hashes);
  for (int rank = 0; number != 0 && rank < place_.size; ++rank) table_->names[number].Add(rank);
  return number;
}

bool DirectNumbers::GiveUp(uint32_t number, absl::FunctionRef<void()> on_free) {
  SharedLock lock(&table_->lock, place_.page);
  if (!lock.held()) return false;
  Table::Name& name = table_->names[number];
  name.users[place_.index / 64] &= ~(uint64_t{1} << (place_.index % 64));
  if (--name.user_count > 0) return false;
  FreeLocked(number);
  on_free();
  return true;
}

void DirectNumbers::ForEach(absl::FunctionRef<void(uint32_t)> call) const {
  SharedLock lock(&table_->lock, place_.page);
  if (!lock.held()) return;
  for (uint32_t number = 1; number <= table_->used; ++number) call(number);
}

void DirectNumbers::FreeLocked(uint32_t number) {
  Table::Name& name = table_->names[number];
  uint32_t* link = &table_->buckets[name.hash_a % kBuckets];
  while (*link != number) link = &table_->names[*link].next;
  *link = name.next;
  name.next = table_->first_free;
  table_->first_free = number;
  table_->bound.fetch_sub(1, std::memory_order_relaxed);
}

// Stored only when it changes: all ranks read it at each use.
void DirectNumbers::SetByBoard(uint32_t number, uint64_t round, bool by_board) {
  std::atomic<uint64_t>& word = table_->by_board[number];
  const uint64_t value = by_board ? round + 1 : 0;
  if (word.load(std::memory_order_relaxed) != value) word.store(value, std::memory_order_relaxed);
}

bool DirectNumbers::IsByBoard(uint32_t number, uint64_t round) const {
  return table_->by_board[number].load(std::memory_order_relaxed) == round + 1;
}

}  // namespace hvd::rt
