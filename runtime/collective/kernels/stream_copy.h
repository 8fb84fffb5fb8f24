// Copies into memory that is not in the caches and will not be soon.
#pragma once

#include <cstddef>

namespace hvd {

// As memcpy, but what is written goes past the caches where the processor can do that: nothing is
// fetched to be overwritten, and nothing useful is pushed out. Slower than memcpy for what the
// caches hold.
void StreamCopy(void* to, const void* from, size_t bytes);

}  // namespace hvd
