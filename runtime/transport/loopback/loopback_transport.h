// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of one process, for tests: messages are copied through mailboxes. Sends never
// wait for their receiver.
#pragma once

#include <memory>
#include <vector>

#include "runtime/transport/transport.h"

namespace hvd::rt {

class LoopbackMailboxes;

// Makes one transport a rank. The transports keep what they share; the world need not outlive them.
class LoopbackWorld {
 public:
  explicit LoopbackWorld(int size);
  LoopbackWorld(LoopbackWorld&&) = default;  // no copies: they would share their messages
  std::unique_ptr<Transport> TransportFor(int rank) const;

 private:
  std::shared_ptr<LoopbackMailboxes> mailboxes_;
};

}  // namespace hvd::rt
