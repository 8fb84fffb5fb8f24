// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/directory.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "base/stable_hash.h"
#include "proto/wire.h"
#include "runtime/collective/collectives.h"
#include "runtime/engine/request/request.h"

namespace hvd::rt {
namespace {

constexpr size_t kLongestName = 4095;
enum { kName = 1, kKind, kIsBytes, kDtype, kShape, kBytes, kOffset };

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("the host's copy of the state is damaged: ", what, "; it cannot be restored"));
}

bool ReadItem(std::string_view bytes, StateItem* item) {
  WireReader reader(bytes);
  bool parsed = true;
  while (reader.Next()) {
    if (reader.field() == kName) item->name = std::string(reader.bytes());
    if (reader.field() == kKind) item->kind = static_cast<int32_t>(reader.number());
    if (reader.field() == kIsBytes) item->is_bytes = reader.number() != 0;
    if (reader.field() == kDtype) item->dtype = static_cast<int32_t>(reader.number());
    if (reader.field() == kShape) parsed = parsed && reader.Packed(&item->shape);
    if (reader.field() == kBytes) item->bytes = reader.number();
    if (reader.field() == kOffset) item->offset = reader.number();
  }
  return parsed && reader.ok();
}

// The bytes that dtype and shape need; false where there is no such tensor.
bool BytesOf(const StateItem& item, uint64_t* bytes) {
  *bytes = DtypeBytes(static_cast<hvd_dtype_t>(item.dtype));
  if (*bytes == 0 || item.shape.size() > kMaxDimensions) return false;
  for (const int64_t length : item.shape) {
    if (length < 0) return false;
    if (__builtin_mul_overflow(*bytes, static_cast<uint64_t>(length), bytes)) return false;
  }
  return true;
}

bool Fits(const StateItem& item, uint64_t file_bytes) {
  if (item.name.empty() || item.name.size() > kLongestName) return false;
  if (item.name.find('\0') != std::string::npos) return false;
  if (item.kind < HVD_STATE_REPLICATED || item.kind > HVD_STATE_PRIVATE) return false;
  if (item.offset < kStateItemsAt || item.offset % kStateLine != 0) return false;
  if (item.offset > file_bytes || item.bytes > file_bytes - item.offset) return false;
  uint64_t bytes = item.bytes;
  return item.is_bytes ? item.kind == HVD_STATE_FIRST
                       : BytesOf(item, &bytes) && bytes == item.bytes;
}

}  // namespace

uint64_t ChecksumOf(std::string_view bytes) { return StableHash().Add(bytes).value(); }

std::string WriteDirectory(const std::vector<StateItem>& items) {
  WireWriter all;
  for (const StateItem& item : items) {
    WireWriter one;
    one.Bytes(kName, item.name).Number(kKind, static_cast<uint64_t>(item.kind));
    one.Number(kIsBytes, item.is_bytes ? 1 : 0).Number(kDtype, static_cast<uint64_t>(item.dtype));
    one.Packed(kShape, item.shape).Number(kBytes, item.bytes).Number(kOffset, item.offset);
    all.Bytes(1, one.bytes());
  }
  return all.bytes();
}

absl::StatusOr<std::vector<StateItem>> ReadDirectory(std::string_view bytes, uint64_t file_bytes) {
  std::vector<StateItem> items;
  std::set<std::pair<bool, std::string>> names;
  WireReader reader(bytes);
  while (reader.Next()) {
    StateItem item;
    if (reader.field() != 1 || !ReadItem(reader.bytes(), &item)) {
      return Damaged("its directory cannot be read");
    }
    if (!Fits(item, file_bytes)) return Damaged("an entry lies outside of it");
    if (!names.emplace(item.is_bytes, item.name).second) return Damaged("a name is there twice");
    items.push_back(std::move(item));
  }
  if (!reader.ok()) return Damaged("its directory cannot be read");
  return items;
}

absl::Status CheckPlace(const DirectoryPlace& place, uint64_t file_bytes) {
  if (place.magic != kDirectoryMagic) return Damaged("it has no directory");
  if (place.at < kStateItemsAt || place.at > file_bytes || place.bytes > file_bytes - place.at) {
    return Damaged("its directory lies outside of it");
  }
  return absl::OkStatus();
}

}  // namespace hvd::rt
