// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/elastic/image.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"
#include "runtime/state/directory.h"

namespace hvd::rt {
namespace {

absl::Status WriteShare(const ImageOf& of, const StateLayout& layout, const ByteRange& range,
                        StateFile* file) {
  if (absl::Status there = file->Populate(range.begin, range.end); !there.ok()) return there;
  for (const StatePiece& piece : PiecesIn(layout, range)) {
    const StateItem& item = layout.items[piece.item];
    absl::Status copied = of.bytes.CopyOut(of.entries.TensorOf(item), {piece.from, piece.bytes},
                                           file->at(item.offset + piece.from));
    if (!copied.ok()) return copied;
  }
  return absl::OkStatus();
}

// Writes the part that one rank alone writes.
absl::Status WriteRest(const ImageOf& of, const StateLayout& layout, StateFile* file) {
  const std::string directory = WriteDirectory(layout.items);
  const uint64_t end = layout.end + directory.size();
  if (absl::Status grown = file->Grow(end); !grown.ok()) return grown;
  if (absl::Status there = file->Populate(layout.replicated_end, end); !there.ok()) return there;
  for (size_t i = layout.replicated; i < layout.items.size(); ++i) {
    const StateItem& item = layout.items[i];
    if (item.is_bytes) {
      const std::string& bytes = of.entries.BytesOf(item);
      std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(file->at(item.offset)));
      continue;
    }
    absl::Status copied =
        of.bytes.CopyOut(of.entries.TensorOf(item), {0, item.bytes}, file->at(item.offset));
    if (!copied.ok()) return copied;
  }
  std::memcpy(file->at(layout.end), directory.data(), directory.size());
  const DirectoryPlace place = {kDirectoryMagic, layout.end, directory.size(),
                                ChecksumOf(directory)};
  std::memcpy(file->at(kStateContentsAt), &place, sizeof(place));
  return absl::OkStatus();
}

absl::Status Damaged() {
  return absl::DataLossError(
      "the host's copy of the state is damaged: its directory is not as it was written; it cannot "
      "be restored");
}

}  // namespace

absl::Status WriteImage(const ImageOf& of, const StateLayout& layout, const ImageWriter& writer,
                        StateFile* file) {
  const ByteRange share = ShareOf(layout, writer.local_rank, writer.local_size);
  if (absl::Status grown = file->Grow(std::max(share.end, kStateItemsAt)); !grown.ok()) {
    return grown;
  }
  BeginState(&file->head()->cells[writer.local_rank]);
  absl::Status written = WriteShare(of, layout, share, file);
  if (!written.ok() || writer.local_rank != 0) return written;
  return WriteRest(of, layout, file);
}

absl::StatusOr<std::vector<StateItem>> FindImage(uint64_t number, StateFile* file) {
  const absl::StatusOr<uint64_t> bytes = file->MapFirst(kStateItemsAt);
  if (!bytes.ok()) return bytes.status();
  if (*bytes < kStateItemsAt || CompleteState(*file->head()).number != number) {
    return absl::NotFoundError(absl::StrCat("commit ", number, " is not complete on this host"));
  }
  DirectoryPlace place;
  std::memcpy(&place, file->at(kStateContentsAt), sizeof(place));
  if (absl::Status fine = CheckPlace(place, *bytes); !fine.ok()) return fine;
  const uint64_t end = place.at + place.bytes;  // it comes last
  if (absl::Status mapped = file->MapFirst(end).status(); !mapped.ok()) return mapped;
  const std::string directory(reinterpret_cast<const char*>(file->at(place.at)), place.bytes);
  return ChecksumOf(directory) == place.check ? ReadDirectory(directory, end) : Damaged();
}

absl::Status ReadTensors(const std::vector<StateItem>& items, const StateFile& file,
                         const ImageOf& into) {
  for (const StateItem& item : items) {
    if (item.is_bytes) continue;
    absl::Status copied =
        into.bytes.CopyIn(into.entries.TensorOf(item), {0, item.bytes}, file.at(item.offset));
    if (!copied.ok()) return copied;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, std::string>> ReadBytes(const std::vector<StateItem>& items,
                                                             const StateFile& file) {
  std::map<std::string, std::string> all;
  for (const StateItem& item : items) {
    if (!item.is_bytes) continue;
    try {
      all[item.name].assign(reinterpret_cast<const char*>(file.at(item.offset)), item.bytes);
    } catch (const std::bad_alloc&) {
      return NoMemoryFor(item);
    }
  }
  return all;
}

}  // namespace hvd::rt
