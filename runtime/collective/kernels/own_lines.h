// Taking cache lines from other cores ahead of time.
#pragma once

#include <cstddef>

namespace hvd {

// Asks for the lines of `memory` to be this core's own, since it will write them soon: a store to a
// line that another core has read waits for as long as a message between cores takes. A hint; does
// not wait, and writes nothing.
void OwnLines(const void* memory, size_t bytes);

}  // namespace hvd
