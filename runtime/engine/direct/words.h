// SPDX-License-Identifier: Apache-2.0
// The word by which a direct mark names a request: its signature's hash, and in the lowest 16 bits
// the bytes that it brings beside the mark. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/engine/request/request.h"

namespace hvd::rt {

// The most bytes that a mark brings.
inline constexpr size_t kMostDirectBytes = 4096;
// The word of a request that goes through the board.
inline constexpr uint64_t kThroughBoard = 0;

// Whether there is a direct way for requests of this kind and type, whatever their size.
bool MayGoDirectly(const Signature& signature);
// Returns the word of a small request, or kThroughBoard when such a request cannot go this way.
uint64_t DirectWordOf(const Signature& signature);
// Returns the word of a request in place: on all ranks from the arenas, or on all from the stages;
// the mark brings `bytes`. A rank that cannot reach the others' arenas still reaches their stages.
uint64_t DirectWordInPlace(const Signature& signature, bool staged, size_t bytes);
inline size_t BytesOfDirectWord(uint64_t word) { return word & 0xffff; }
// Whether two marks name the same request, each with what its rank brings.
inline bool NameTheSame(uint64_t word, uint64_t other) { return word >> 16 == other >> 16; }

}  // namespace hvd::rt
