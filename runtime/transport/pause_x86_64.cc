#include "runtime/transport/waiter.h"

namespace hvd {

void Waiter::Pause() { __builtin_ia32_pause(); }

}  // namespace hvd
