// SPDX-License-Identifier: Apache-2.0
// Where shared memory is mapped, so that the same place of several ranks' arenas can be in a
// first-level cache at once, and each has room to grow.
//
// AMD's Zen processors look lines up by a hash of the address's bits 12 to 27 (Lipp et al., "Take A
// Way", 2020): of two addresses with the same hash and the same place in their pages only one is
// there at a time. Arenas a multiple of 256 MB apart are like that wherever their offsets are
// equal, as they are when ranks sum the same tensor: a sum of two took 4 to 12 times as long (Zen
// 3). Begins that differ in bits 21 to 27 never are; elsewhere this costs nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hvd::rt {

inline constexpr int kArenaPlaces = 128;
// The place of this process's own arena; its peers' arenas have the others.
inline constexpr int kOwnArenaPlace = 0;

// A file that is mapped in pieces, each where a mapping of the whole would have it.
struct ApartFile {
  int fd = -1;
  uint64_t bytes = 0;
  int place = 0;  // below kArenaPlaces
};

// Maps `bytes` of the file from `begin` on for reading and writing by all. The file's beginning
// would lie `place` huge pages past a multiple of 256 MB, far from what the system maps by itself,
// so that nothing is behind the piece most likely; nothing there is reserved. Anywhere when the
// address space is too small for the choice. Null when it cannot be mapped at all; errno says why.
void* MapApart(const ApartFile& file, uint64_t begin, uint64_t bytes);
// Right behind what is mapped already. False when something else is there, or none can be mapped;
// errno says why. Nothing that is mapped is ever replaced.
bool MapBehind(const ApartFile& file, std::byte* at, uint64_t begin, uint64_t bytes);

}  // namespace hvd::rt
