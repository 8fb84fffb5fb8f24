// Link A's server: gRPC to the Daemon and back. The only place of this room that sees gRPC.
#pragma once

#include <memory>

#include "daemon/unique_fd.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd {

class Daemon;

// Events on their way to the driver: thread-safe, never blocks.
class EventQueue {
 public:
  EventQueue();
  ~EventQueue();
  void Put(v1::Event event);
  // Waits for the next one. False: closed.
  bool Take(v1::Event* event);
  void Close();

 private:
  struct Inside;
  const std::unique_ptr<Inside> inside_;
};

// A running gRPC server on one connection.
class LinkA {
 public:
  // `connection`: a stream socket; made non-blocking. `daemon` and `events` outlive this.
  LinkA(UniqueFd connection, Daemon* daemon, EventQueue* events);
  ~LinkA();

 private:
  struct Inside;
  const std::unique_ptr<Inside> inside_;
};

}  // namespace hvd
