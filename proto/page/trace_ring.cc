// SPDX-License-Identifier: Apache-2.0
#include "proto/page/trace_ring.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace hvd {
namespace {

constexpr size_t kTextPerSlot = sizeof(TraceSlot::words);
constexpr size_t kLongestName = 240;  // ten slots
// The slots of a frame: so few that whoever reads frame by frame stays in its caches.
constexpr size_t kFrameSlots = 2048;
constexpr size_t kMostSlots = kLongestName / kTextPerSlot + 2;

struct FrameHeader {
  uint32_t local_rank;
  uint32_t slots;
  uint64_t lost;
};

// 1 to 65535, so that zeroed memory is no published slot. It wraps: a slot that has not been
// written in this lap holds the lap before, since writers never pass the reader.
uint64_t Lap(uint64_t place) { return place / kTraceSlots % 65535 + 1; }

uint64_t Tag(const TraceSpan& span, TraceActivity activity) {
  return static_cast<uint64_t>(span.region) << 40 | static_cast<uint64_t>(activity) << 32 |
         span.tensor;
}

struct Words {
  uint64_t words[3];
  uint64_t tag;
};

// The slots of a name with its set and the span behind it. Returns how many.
size_t Spell(const TraceSpan& span, std::string_view name, Words* out) {
  size_t count = 0;
  if (!name.empty() && span.set != 0) {
    out[count++] = {{static_cast<uint32_t>(span.set)}, Tag(span, TraceActivity::kSetNumber)};
  }
  name = name.substr(0, kLongestName);
  while (!name.empty()) {
    const size_t part = std::min(name.size(), kTextPerSlot);
    std::memset(out[count].words, 0, kTextPerSlot);
    std::memcpy(out[count].words, name.data(), part);
    name.remove_prefix(part);
    out[count].tag = Tag(span, name.empty() ? TraceActivity::kNameEnd : TraceActivity::kNameText);
    ++count;
  }
  out[count] = {
      {static_cast<uint64_t>(span.begin_ns), static_cast<uint64_t>(span.end_ns), span.bytes},
      Tag(span, span.activity)};
  return count + 1;
}

constexpr const char* kOperations[] = {
    "",        "ALLREDUCE",       "ALLGATHER",         "BROADCAST",
    "BARRIER", "SHUTDOWN",        "REDUCESCATTER",     "ALLTOALL",
    "JOIN",    "ADD_PROCESS_SET", "REMOVE_PROCESS_SET"};
constexpr const char* kActivities[] = {"QUEUE",          "HOST_REDUCE",  "HOST_COPY",
                                       "NETWORK_REDUCE", "NETWORK_COPY", "DEVICE_REDUCE",
                                       "DEVICE_COPY"};

}  // namespace

std::string ActivityName(TraceActivity activity) {
  const auto number = static_cast<size_t>(activity);
  constexpr auto kNegotiate = static_cast<size_t>(TraceActivity::kNegotiate);
  constexpr auto kFirst = static_cast<size_t>(TraceActivity::kQueue);
  if (number < std::size(kOperations)) return kOperations[number];
  if (number > kNegotiate && number - kNegotiate < std::size(kOperations)) {
    return std::string("NEGOTIATE_") + kOperations[number - kNegotiate];
  }
  if (number >= kFirst && number - kFirst < std::size(kActivities)) {
    return kActivities[number - kFirst];
  }
  return "";
}

namespace {

// A frame with at most `most` slots; none when it would say nothing. Returns the slots.
size_t AppendFrame(TraceRing* ring, TraceCursor* cursor, FrameHeader header, size_t most,
                   std::string* out) {
  const size_t start = out->size();
  out->resize(start + sizeof(header) + most * sizeof(TraceSlot));
  char* at = out->data() + start + sizeof(header);
  for (; header.slots < most; ++header.slots, ++cursor->next, at += sizeof(TraceSlot)) {
    const TraceSlot& slot = ring->slots[cursor->next % kTraceSlots];
    const uint64_t tag = slot.tag.load(std::memory_order_acquire);
    if (tag >> 48 != Lap(cursor->next)) break;
    std::memcpy(at, slot.words, sizeof(slot.words));
    std::memcpy(at + sizeof(slot.words), &tag, sizeof(tag));
  }
  const bool empty = header.slots == 0 && header.lost == 0;
  std::memcpy(out->data() + start, &header, sizeof(header));
  out->resize(empty ? start : static_cast<size_t>(at - out->data()));
  ring->tail.store(cursor->next, std::memory_order_release);
  return header.slots;
}

}  // namespace

bool PutSpan(TraceRing* ring, const TraceSpan& span, std::string_view name) {
  Words spelled[kMostSlots];
  const size_t count = Spell(span, name, spelled);
  uint64_t place = ring->head.load(std::memory_order_relaxed);
  do {
    if (place + count - ring->tail.load(std::memory_order_acquire) > kTraceSlots) {
      ring->lost.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
  } while (!ring->head.compare_exchange_weak(place, place + count, std::memory_order_relaxed));
  for (size_t i = 0; i < count; ++i, ++place) {
    TraceSlot& slot = ring->slots[place % kTraceSlots];
    std::memcpy(slot.words, spelled[i].words, sizeof(slot.words));
    slot.tag.store(spelled[i].tag | Lap(place) << 48, std::memory_order_release);
  }
  return true;
}

void DrainRing(TraceRing* ring, TraceCursor* cursor, uint32_t local_rank, size_t room,
               std::string* out) {
  size_t left = std::min(room / sizeof(TraceSlot), kTraceSlots);
  size_t taken = kFrameSlots;
  for (; taken == kFrameSlots; left -= taken) {
    const uint64_t lost = ring->lost.load(std::memory_order_relaxed);
    const uint64_t newly_lost = lost - std::exchange(cursor->lost, lost);
    taken =
        AppendFrame(ring, cursor, {local_rank, 0, newly_lost}, std::min(left, kFrameSlots), out);
  }
}

bool TraceDecoder::Take(std::string_view bytes, std::vector<TraceRecord>* records) {
  rest_.append(bytes);
  size_t at = 0;
  FrameHeader header;
  while (rest_.size() - at >= sizeof(header)) {
    std::memcpy(&header, rest_.data() + at, sizeof(header));
    if (header.slots > kTraceSlots) return false;
    const size_t whole = sizeof(header) + header.slots * sizeof(TraceSlot);
    if (rest_.size() - at < whole) break;
    if (header.lost != 0) {
      TraceRecord gap;
      gap.local_rank = header.local_rank;
      gap.lost = header.lost;
      records->push_back(std::move(gap));
    }
    records->reserve(records->size() + header.slots);
    for (size_t i = 0; i < header.slots; ++i) {
      TakeSlot(header.local_rank, rest_.data() + at + sizeof(header) + i * sizeof(TraceSlot),
               records);
    }
    at += whole;
  }
  rest_.erase(0, at);
  return true;
}

void TraceDecoder::TakeSlot(uint32_t local_rank, const char* slot,
                            std::vector<TraceRecord>* records) {
  Words words;
  std::memcpy(&words, slot, sizeof(words));
  TraceRecord record;
  record.local_rank = local_rank;
  record.span.activity = static_cast<TraceActivity>(words.tag >> 32 & 0xff);
  record.span.region = static_cast<uint8_t>(words.tag >> 40 & 0xff);
  record.span.tensor = static_cast<uint32_t>(words.tag);
  if (record.span.activity == TraceActivity::kSetNumber) {
    names_[local_rank].set = static_cast<int32_t>(words.words[0]);
    return;
  }
  if (record.span.activity == TraceActivity::kNameText ||
      record.span.activity == TraceActivity::kNameEnd) {
    Name& name = names_[local_rank];
    if (name.text.size() < kLongestName) name.text.append(slot, strnlen(slot, kTextPerSlot));
    if (record.span.activity == TraceActivity::kNameText) return;
    record.name.swap(name.text);
    record.span.set = std::exchange(name, {}).set;
  } else {
    record.span.begin_ns = static_cast<int64_t>(words.words[0]);
    record.span.end_ns = static_cast<int64_t>(words.words[1]);
    record.span.bytes = words.words[2];
  }
  records->push_back(std::move(record));
}

}  // namespace hvd
