// SPDX-License-Identifier: Apache-2.0
// Copies between buffers, at the best instruction level this processor has, and what else a copy
// can say to the caches. In processor_*.cc.
#pragma once

#include <cstddef>

#include "runtime/collective/kernels/reduce_kernels.h"

namespace hvd::rt {

// As memcpy (no overlap; nothing is touched when `bytes` is 0), but at no alignment slow. The C
// library's memcpy leaves more than a few KB to the processor's string copy. That is the best for
// memory that lies in another processor's cache, since it fetches nothing to be overwritten; but on
// some (seen on Zen 3) it falls to a twentieth of its speed when the destination lies up to 31
// bytes after the source within a page, as malloc's large buffers do beside a stage.
void CopyBytes(void* to, const void* from, size_t bytes);

using CopyKernel = void (*)(void* to, const void* from, size_t bytes);

// The copy at one level, for tests. REQUIRES: level <= BestKernelLevel().
CopyKernel FindCopyKernel(KernelLevel level);

// Copies into memory that is not in the caches and will not be soon: as memcpy, but what is written
// goes past the caches where the processor can do that: nothing is fetched to be overwritten, and
// nothing useful is pushed out. Slower than memcpy for what the caches hold.
void StreamCopy(void* to, const void* from, size_t bytes);

// Asks for the lines of `memory` to be this core's own, since it will write them soon: a store to a
// line that another core has read waits for as long as a message between cores takes. A hint; does
// not wait, and writes nothing.
void OwnLines(const void* memory, size_t bytes);

}  // namespace hvd::rt
