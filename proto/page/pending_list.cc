// SPDX-License-Identifier: Apache-2.0
#include "proto/page/pending_list.h"

#include <algorithm>
#include <cstring>

#include "proto/wire.h"

namespace hvd {
namespace {

enum { kMembers = 1, kTensor = 2, kTruncated = 3, kJoined = 4, kSet = 5 };
enum { kSequence = 1, kName = 2, kWhat = 3, kBetween = 4 };
constexpr size_t kRoom = sizeof(PendingArea::text);
constexpr size_t kLongestText = 160;

std::string Encode(const PendingTensor& tensor) {
  const std::string_view name = tensor.name, what = tensor.what;
  WireWriter words;
  words.Number(kSequence, tensor.sequence)
      .Bytes(kName, name.substr(0, kLongestText))
      .Bytes(kWhat, what.substr(0, kLongestText));
  if (!tensor.between.empty()) words.Packed(kBetween, tensor.between);
  return words.bytes();
}

bool Decode(std::string_view bytes, PendingTensor* tensor) {
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == kSequence) tensor->sequence = reader.number();
    if (reader.field() == kName) tensor->name = std::string(reader.bytes());
    if (reader.field() == kWhat) tensor->what = std::string(reader.bytes());
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
  for (const PendingTensor& tensor : list.tensors) {
    const std::string one = Encode(tensor);
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
  if (area.answered.load(std::memory_order_acquire) != question) return false;
  const std::string bytes(area.text, std::min<size_t>(area.bytes, kRoom));
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == kMembers && !reader.Packed(&list->members)) return false;
    if (reader.field() == kJoined) list->joined = true;
    if (reader.field() == kSet) list->set = static_cast<int32_t>(reader.number());
    if (reader.field() == kTruncated) list->truncated = reader.number() != 0;
    if (reader.field() != kTensor) continue;
    list->tensors.emplace_back();
    if (!Decode(reader.bytes(), &list->tensors.back())) return false;
  }
  return reader.ok();
}

}  // namespace hvd
