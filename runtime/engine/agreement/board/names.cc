// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/board/names.h"

#include <algorithm>
#include <cstring>

namespace hvd::rt {
namespace {

// How many entries are looked at for one that is idle, where the board can grow instead: so a new
// name costs no more where many are outstanding.
constexpr uint32_t kLooks = 4096;

uint64_t HashName(std::string_view name, uint64_t seed) {
  uint64_t hash = seed ^ name.size();
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace

BoardNames::Hashes BoardNames::HashesOf(std::string_view name) {
  return {HashName(name, 0x243f6a8885a308d3ull), HashName(name, 0x13198a2e03707344ull)};
}

std::string_view BoardNames::KeptName(const BoardEntry& entry) {
  return {entry.name, std::min(entry.name_length, BoardEntry::kNameKept)};
}

std::string BoardNames::Name(uint32_t number) const {
  const BoardEntry& entry = room_.memory().entry(number);
  std::string name(KeptName(entry));
  // The part that was cut from a long name still has to tell names apart at the root.
  if (entry.name_length > BoardEntry::kNameKept) name += "#" + std::to_string(entry.hash_b);
  return name;
}

absl::Status BoardNames::Keep(std::string_view name) {
  const auto keep = [&]() -> absl::StatusOr<uint32_t> {
    kBoardLock.AssertHeld();
    BoardHeader& header = room_.header();
    ++header.kept;  // there is room for these beyond what may be pending
    const uint32_t number = FindOrCreate(name);
    const bool found = IsNumber(number);
    if (!found || room_.memory().entry(number).kept) --header.kept;
    if (found) room_.memory().entry(number).kept = true;
    return number;
  };
  return room_.WithRoom(name, keep).status();
}

void BoardNames::Release(std::string_view name) {
  BoardLock lock(room_);
  if (!lock.held()) return;
  const uint32_t number = Find(name);
  if (number == kNoNumber || !room_.memory().entry(number).kept) return;
  room_.memory().entry(number).kept = false;
  --room_.header().kept;
}

bool BoardNames::IsIdle(const BoardEntry& entry, MarkWord word) const {
  if (word.asked() != 0 || word.in_flight()) return false;
  const uint64_t end = entry.last_log_end.load(std::memory_order_relaxed);
  for (int r = 0; r < room_.place().local_size; ++r) {
    if (room_.memory().position(r).executed.load(std::memory_order_acquire) < end) return false;
  }
  return true;
}

void BoardNames::Unlink(uint32_t number) {
  const BoardMemory& memory = room_.memory();
  uint32_t* link = &memory.bucket_of(number, memory.entry(number).bucket);
  while (*link != number) link = &memory.entry(*link).next;
  *link = memory.entry(number).next;
}

// Takes an entry that nobody uses away from its name. Ranks that remember it find its word changed;
// one that marks it at this moment wins, and the search goes on.
uint32_t BoardNames::TakeIdleEntry(uint32_t limit) {
  const BoardMemory& memory = room_.memory();
  BoardHeader& header = memory.header();
  const int ready = static_cast<int>(header.joined_count);
  if (header.used < std::min(memory.numbers(), limit)) {
    BoardEntry& entry = memory.entry(++header.used);
    entry.word.store(MarkWord(0).Renamed(ready).bits(), std::memory_order_release);
    return header.used;
  }
  const bool may_grow = header.used < limit && memory.MayGrow();
  const uint32_t looks = may_grow ? std::min(header.used, kLooks) : header.used;
  for (uint32_t tried = 0; tried < looks; ++tried) {
    header.clock_hand = header.clock_hand % header.used + 1;
    BoardEntry& entry = memory.entry(header.clock_hand);
    uint64_t seen = entry.word.load(std::memory_order_acquire);
    if (!entry.kept && IsIdle(entry, MarkWord(seen)) &&
        entry.word.compare_exchange_strong(seen, MarkWord(seen).Renamed(ready).bits())) {
      Unlink(header.clock_hand);
      return header.clock_hand;
    }
  }
  return may_grow ? kNoNumber : kNoRoomLeft;
}

uint32_t BoardNames::Find(std::string_view name) const { return Find(name, HashesOf(name)); }

uint32_t BoardNames::Find(std::string_view name, const Hashes& hashes) const {
  const BoardMemory& memory = room_.memory();
  const std::string_view kept = name.substr(0, BoardEntry::kNameKept);
  for (int section = 0; section < memory.sections(); ++section) {
    uint32_t n = memory.bucket(section, hashes.bucket);
    for (; n != kNoNumber; n = memory.entry(n).next) {
      const BoardEntry& found = memory.entry(n);
      if (found.hash_b == hashes.whole && found.name_length == name.size() &&
          KeptName(found) == kept) {
        return n;
      }
    }
  }
  return kNoNumber;
}

uint32_t BoardNames::FindOrCreate(std::string_view name) {
  const Hashes hashes = HashesOf(name);
  if (const uint32_t found = Find(name, hashes); found != kNoNumber) return found;
  // Hvd's own calls keep their names: they are few, and have room when users' have none left.
  const bool own = name.substr(0, 1) == kOwnName;
  uint32_t& kept = room_.header().kept;
  kept += own ? 1 : 0;
  const uint32_t number = TakeIdleEntry(room_.place().most_pending + kept);
  if (!IsNumber(number)) {
    kept -= own ? 1 : 0;
    return number;
  }
  room_.memory().entry(number).kept = own;
  Call(number, name, hashes);
  return number;
}

// Gives an entry that has been taken its name.
void BoardNames::Call(uint32_t number, std::string_view name, const Hashes& hashes) {
  BoardEntry& made = room_.memory().entry(number);
  made.hash_b = hashes.whole;
  made.name_length = static_cast<uint32_t>(name.size());
  std::memcpy(made.name, name.data(), std::min<size_t>(name.size(), BoardEntry::kNameKept));
  made.tenant = ++room_.header().tenants;
  made.registered = false;
  made.mismatch = false;
  made.changed = {};
  made.neutral = room_.header().joined;
  made.bucket = static_cast<uint32_t>(hashes.bucket);  // what is needed of it
  uint32_t& bucket = room_.memory().bucket_of(number, hashes.bucket);
  made.next = bucket;
  bucket = number;
}

}  // namespace hvd::rt
