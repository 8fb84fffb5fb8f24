// SPDX-License-Identifier: Apache-2.0
// A board's names: which number each has. A name gets a number when a rank marks it first, and may
// lose it when nobody wants it any more and another needs one.
#pragma once

#include <string>
#include <string_view>

#include "runtime/engine/agreement/board/room.h"

namespace hvd::rt {

// Threads: any.
class BoardNames {
 public:
  explicit BoardNames(const BoardRoom* room) : room_(*room) {}

  // As Board's.
  absl::Status Keep(std::string_view name);
  void Release(std::string_view name);

  // The name's number, or kNoNumber.
  uint32_t Find(std::string_view name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kBoardLock);
  // … or one that it has from now on; kNoNumber or kNoRoomLeft where there is none for it.
  uint32_t FindOrCreate(std::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kBoardLock);

  // KeptName returns the part of the name that fits in the entry, Name a text that tells the name
  // apart from all others. REQUIRES: the entry cannot change its name while the caller uses it.
  static std::string_view KeptName(const BoardEntry& entry);
  std::string Name(uint32_t number) const;
  // Nobody wants it, and everybody is done with it.
  bool IsIdle(const BoardEntry& entry, MarkWord word) const;

 private:
  struct Hashes {
    uint64_t bucket, whole;
  };
  static Hashes HashesOf(std::string_view name);
  uint32_t Find(std::string_view name, const Hashes& hashes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kBoardLock);
  uint32_t TakeIdleEntry(uint32_t limit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kBoardLock);
  void Unlink(uint32_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kBoardLock);
  void Call(uint32_t number, std::string_view name, const Hashes& hashes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kBoardLock);

  const BoardRoom& room_;
};

}  // namespace hvd::rt
