// SPDX-License-Identifier: Apache-2.0
// Where shared memory is mapped, so that the same place of several ranks' arenas can be in a
// first-level cache at once.
//
// AMD's Zen processors look lines up by a hash of the address's bits 12 to 27 (Lipp et al., "Take A
// Way", 2020): of two addresses with the same hash and the same place in their pages only one is
// there at a time. Arenas a multiple of 256 MB apart are like that wherever their offsets are
// equal, as they are when ranks sum the same tensor: a sum of two took 4 to 12 times as long (Zen
// 3). Begins that differ in bits 21 to 27 never are; elsewhere this costs nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hvd {

inline constexpr int kArenaPlaces = 128;
// Of this process's own arena; its peers' are the others.
inline constexpr int kOwnArenaPlace = 0;

// Maps the file for reading and writing by all, beginning at `place` huge pages (modulo
// kArenaPlaces) past a multiple of 256 MB; anywhere when the address space is too small for the
// choice. Null when it cannot be mapped at all; errno says why.
void* MapAtPlace(int fd, uint64_t bytes, int place);

}  // namespace hvd
