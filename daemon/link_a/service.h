// SPDX-License-Identifier: Apache-2.0
// Link A's server: gRPC to the Daemon and back. The only place of this room that sees gRPC.
#pragma once

#include <memory>

#include "base/descriptor.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd::daemon {

class Daemon;

// A gRPC server on one connection, with one thread for all that comes ("hvdd-link") and one that
// waits for output ("hvdd-output").
class LinkA {
 public:
  LinkA();
  ~LinkA();

  // To the driver. Any thread, also before Serve; never blocks; dropped once the driver is gone.
  void Emit(const v1::Event& event);

  // `connection`: a stream socket; made non-blocking. `daemon` outlives this.
  void Serve(Descriptor connection, Daemon* daemon);

 private:
  class Inside;
  const std::unique_ptr<Inside> inside_;
};

}  // namespace hvd::daemon
