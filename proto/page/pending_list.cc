// SPDX-License-Identifier: Apache-2.0
#include "proto/page/pending_list.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/wire.h"

namespace hvd {
namespace {

enum { kMembers = 1, kTensor = 2, kTruncated = 3, kJoined = 4, kSet = 5 };
enum { kSequence = 1, kName = 2, kWhat = 3, kBetween = 4, kShared = 5, kMoving = 6 };
constexpr size_t kRoom = sizeof(PendingArea::text);
constexpr size_t kLongestWhat = 400;

size_t SharedBytes(std::string_view a, std::string_view b) {
  const auto at = std::mismatch(a.begin(), a.begin() + std::min(a.size(), b.size()), b.begin());
  return static_cast<size_t>(at.first - a.begin());
}

// Names are whole, for they are compared with other ranks'. Only the part of a name is told in
// which it differs from the name `before`: long ones mostly begin alike.
std::string Encode(const PendingTensor& tensor, std::string_view before) {
  const std::string_view name = tensor.name, what = tensor.what;
  const size_t shared = SharedBytes(name, before);
  WireWriter words;
  words.Number(kSequence, tensor.sequence)
      .Number(kShared, shared)
      .Bytes(kName, name.substr(shared))
      .Bytes(kWhat, what.substr(0, kLongestWhat));
  if (!tensor.between.empty()) words.Packed(kBetween, tensor.between);
  if (tensor.moving) words.Number(kMoving, 1);
  return words.bytes();
}

bool Decode(std::string_view bytes, std::string_view before, PendingTensor* tensor) {
  WireReader reader(bytes);
  std::string_view shared;
  while (reader.Next()) {
    if (reader.field() == kSequence) tensor->sequence = reader.number();
    if (reader.field() == kShared) shared = before.substr(0, reader.number());
    if (reader.field() == kName) tensor->name = std::string(shared) + std::string(reader.bytes());
    if (reader.field() == kWhat) tensor->what = std::string(reader.bytes());
    if (reader.field() == kMoving) tensor->moving = true;
    if (reader.field() == kBetween && !reader.Packed(&tensor->between)) return false;
  }
  return reader.ok();
}

}  // namespace

void WritePending(const PendingList& list, uint32_t question, PendingArea* area) {
  WireWriter writer;
  writer.Packed(kMembers, list.members);
  if (list.joined) writer.Number(kJoined, 1);
  if (list.set != 0) writer.Number(kSet, static_cast<uint32_t>(list.set));
  bool truncated = list.truncated;
  std::string_view before;
  for (const PendingTensor& tensor : list.tensors) {
    const std::string one = Encode(tensor, std::exchange(before, tensor.name));
    truncated |= writer.bytes().size() + one.size() + 16 > kRoom;
    if (truncated) break;
    writer.Bytes(kTensor, one);
  }
  writer.Number(kTruncated, truncated ? 1 : 0);
  area->answered.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  area->bytes = static_cast<uint32_t>(std::min(writer.bytes().size(), kRoom));
  std::memcpy(area->text, writer.bytes().data(), area->bytes);
  area->answered.store(question, std::memory_order_release);
}

bool ReadPending(const PendingArea& area, uint32_t question, PendingList* list) {
  const uint32_t answered = area.answered.load(std::memory_order_acquire);
  if (answered == 0 || static_cast<int32_t>(answered - question) < 0) return false;
  const std::string bytes(area.text, std::min<size_t>(area.bytes, kRoom));
  std::atomic_thread_fence(std::memory_order_acquire);
  if (area.answered.load(std::memory_order_relaxed) != answered) return false;
  WireReader reader(bytes);
  std::string before;
  while (reader.Next()) {
    if (reader.field() == kMembers && !reader.Packed(&list->members)) return false;
    if (reader.field() == kJoined) list->joined = true;
    if (reader.field() == kSet) list->set = static_cast<int32_t>(reader.number());
    if (reader.field() == kTruncated) list->truncated = reader.number() != 0;
    if (reader.field() != kTensor) continue;
    PendingTensor& tensor = list->tensors.emplace_back();
    if (!Decode(reader.bytes(), before, &tensor)) return false;
    before = tensor.name;
  }
  return reader.ok();
}

}  // namespace hvd
