// A host while it is being reached: the socket before the hello, the remote shell's words,
// attempts. Passive: the driver's loop calls it when something is readable.
#pragma once

#include <string>

#include "cli/descriptor.h"
#include "cli/driver_hello.h"

namespace hvd {

// What reading from a host's socket came to.
struct Greeting {
  enum State { kWaiting, kReady, kWrong } state = kWaiting;
  std::string cause;  // kWrong
  std::string remedy;
};

class HostPort {
 public:
  // A fresh attempt: forgets the words of the one before.
  void Begin(Descriptor socket, Descriptor errors);

  // Reads on towards the hello. kReady: the next byte of the socket is gRPC's. Call it again on
  // every edge.
  Greeting Greet(const std::string& marker, const std::string& host);
  // Takes what the remote shell wrote to stderr. Whole lines come back for showing.
  std::string TakeErrors();

  int socket() const { return socket_.get(); }
  int errors() const { return errors_.get(); }
  Descriptor TakeSocket() { return std::move(socket_); }
  void CloseErrors() { errors_.Reset(); }

  const std::string& noise() const { return noise_; }
  const std::string& error_text() const { return error_text_; }
  std::string Evidence() const;  // both, quoted

  int attempts = 0;
  bool greeted = false;
  double restart_at = 0;  // 0: not waiting for another attempt
  std::string ended;      // how its command ended, in words; empty while it runs
  int words_shown = 0;    // lines of its stderr
  uint64_t output_received = 0;
  uint64_t output_acknowledged = 0;
  uint64_t stdin_taken = 0;

 private:
  Descriptor socket_;
  Descriptor errors_;
  bool hello_done_ = false;
  std::string noise_;
  std::string error_text_;  // the last kMaxHelloNoise bytes
  std::string error_line_;  // not yet complete
};

}  // namespace hvd
