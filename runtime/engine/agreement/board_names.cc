#include <algorithm>
#include <cstring>

#include "runtime/engine/agreement/board_lock.h"

namespace hvd {
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
constexpr uint64_t kSeedA = 0x243f6a8885a308d3ull;
constexpr uint64_t kSeedB = 0x13198a2e03707344ull;

}  // namespace

std::string_view Board::KeptName(const BoardEntry& entry) const {
  return {entry.name, std::min(entry.name_length, BoardEntry::kNameKept)};
}

// Of an entry that cannot change its name while the caller uses it.
std::string Board::Name(uint32_t number) const {
  const BoardEntry& entry = memory_.entry(number);
  std::string name(KeptName(entry));
  // What was cut from a long name still has to tell names apart at the root.
  if (entry.name_length > BoardEntry::kNameKept) name += "#" + std::to_string(entry.hash_b);
  return name;
}

absl::Status Board::Keep(std::string_view name) {
  BoardHeader& header = memory_.header();
  const auto keep = [&]() -> absl::StatusOr<uint32_t> {
    ++header.kept;  // there is room for these beyond what may be pending
    const uint32_t number = FindOrCreate(name);
    const bool found = number != kNone && number != kFull;
    if (!found || memory_.entry(number).kept) --header.kept;
    if (found) memory_.entry(number).kept = true;
    return number;
  };
  return WithRoom(name, keep).status();
}

void Board::Release(std::string_view name) {
  Lock lock(*this);
  if (!lock.held()) return;
  const uint32_t number = Find(name);
  if (number == kNone || !memory_.entry(number).kept) return;
  memory_.entry(number).kept = false;
  --memory_.header().kept;
}

// Nobody wants it, and everybody is done with it.
bool Board::IsIdle(const BoardEntry& entry, MarkWord word) const {
  if (word.asked() != 0 || word.in_flight()) return false;
  const uint64_t end = entry.last_log_end.load(std::memory_order_relaxed);
  for (int r = 0; r < place_.local_size; ++r) {
    if (memory_.position(r).executed.load(std::memory_order_acquire) < end) return false;
  }
  return true;
}

void Board::Unlink(uint32_t number) {
  uint32_t* link = &memory_.bucket_of(number, memory_.entry(number).bucket);
  while (*link != number) link = &memory_.entry(*link).next;
  *link = memory_.entry(number).next;
}

// Takes an entry that nobody uses away from its name. Ranks that remember it find its word changed;
// one that marks it at this moment wins, and the search goes on.
uint32_t Board::TakeIdleEntry(uint32_t limit) {
  BoardHeader& header = memory_.header();
  const int ready = static_cast<int>(header.joined_count);
  if (header.used < std::min(memory_.numbers(), limit)) {
    BoardEntry& entry = memory_.entry(++header.used);
    entry.word.store(MarkWord(0).Renamed(ready).bits(), std::memory_order_release);
    return header.used;
  }
  const bool may_grow = header.used < limit && memory_.MayGrow();
  const uint32_t looks = may_grow ? std::min(header.used, kLooks) : header.used;
  for (uint32_t tried = 0; tried < looks; ++tried) {
    header.clock_hand = header.clock_hand % header.used + 1;
    BoardEntry& entry = memory_.entry(header.clock_hand);
    uint64_t seen = entry.word.load(std::memory_order_acquire);
    if (!entry.kept && IsIdle(entry, MarkWord(seen)) &&
        entry.word.compare_exchange_strong(seen, MarkWord(seen).Renamed(ready).bits())) {
      Unlink(header.clock_hand);
      return header.clock_hand;
    }
  }
  return may_grow ? kNone : kFull;
}

uint32_t Board::Find(std::string_view name) const {
  return Find(name, HashName(name, kSeedA), HashName(name, kSeedB));
}

uint32_t Board::Find(std::string_view name, uint64_t hash, uint64_t hash_b) const {
  const std::string_view kept = name.substr(0, BoardEntry::kNameKept);
  for (int chunk = 0; chunk < memory_.chunks(); ++chunk) {
    for (uint32_t n = memory_.bucket(chunk, hash); n != kNone; n = memory_.entry(n).next) {
      const BoardEntry& found = memory_.entry(n);
      if (found.hash_b == hash_b && found.name_length == name.size() && KeptName(found) == kept) {
        return n;
      }
    }
  }
  return kNone;
}

uint32_t Board::FindOrCreate(std::string_view name) {
  const uint64_t hash = HashName(name, kSeedA);
  const uint64_t hash_b = HashName(name, kSeedB);
  if (const uint32_t found = Find(name, hash, hash_b); found != kNone) return found;
  // Hvd's own calls keep their names: they are few, and have room when users' have none left.
  const bool own = name.substr(0, 1) == kOwnName;
  uint32_t& kept = memory_.header().kept;
  kept += own ? 1 : 0;
  const uint32_t number = TakeIdleEntry(place_.most_pending + kept);
  if (number == kNone || number == kFull) {
    kept -= own ? 1 : 0;
    return number;
  }
  BoardEntry& made = memory_.entry(number);
  made.hash_b = hash_b;
  made.name_length = static_cast<uint32_t>(name.size());
  std::memcpy(made.name, name.data(), std::min<size_t>(name.size(), BoardEntry::kNameKept));
  made.tenant = ++memory_.header().tenants;
  made.kept = own;
  made.registered = false;
  made.mismatch = false;
  made.changed = {};
  made.neutral = memory_.header().joined;
  made.bucket = static_cast<uint32_t>(hash);  // what is needed of it
  uint32_t& bucket = memory_.bucket_of(number, hash);
  made.next = bucket;
  bucket = number;
  return number;
}

// So that this rank's next mark of the name needs no lock.
void Board::Remember(uint32_t number, std::string_view name) {
  if (known_.size() <= number) known_.resize(number + 1);
  Known& known = known_[number];
  if (known.name != name) {
    if (!known.name.empty()) numbers_.erase(known.name);
    known.name = name;
    numbers_[known.name] = number;
  }
  BoardEntry& entry = memory_.entry(number);
  known.entry = &entry;
  known.outstanding = &memory_.outstanding(place_.local_rank, number);
  known.version = MarkWord(entry.word.load(std::memory_order_relaxed)).version();
  known.registered = entry.registered;
  if (known.registered) known.agreed = entry.agreed;
}

}  // namespace hvd
