// SPDX-License-Identifier: Apache-2.0
// A host while it is being reached: the socket before the hello, the remote shell's words,
// attempts. Passive: the driver's loop calls it when something is readable.
#pragma once

#include <string>

#include "base/descriptor.h"
#include "cli/reach/hello_reader.h"
#include "cli/reach/ssh_failure.h"

namespace hvd::cli {

// The outcome of reading from a host's socket.
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

  const std::string& noise() const { return noise_; }  // without our own command's word
  // Our own command has run there: what goes wrong now is no login's fault.
  bool logged_in() const { return logged_in_; }
  const std::string& error_text() const { return error_text_; }
  std::string Evidence() const;                              // both, quoted
  const std::string& identity() const { return identity_; }  // of the host that has greeted

  int attempts = 0;
  bool greeted = false;
  double restart_at = 0;    // 0: not waiting for another attempt
  StartFailure awaited;     // why it is not there yet; no cause: it is not waited for
  LinkEnd ended;            // how its command ended; no cause while it runs
  bool link_ended = false;  // gRPC's
  int words_shown = 0;      // lines of its stderr
  uint64_t output_received = 0;
  uint64_t output_acknowledged = 0;
  uint64_t stdin_taken = 0;

 private:
  Descriptor socket_;
  Descriptor errors_;
  void TakeNoise(std::string_view noise);

  bool hello_done_ = false;
  bool logged_in_ = false;
  std::string identity_;
  std::string noise_;
  std::string error_text_;  // the last kMaxHelloNoise bytes
  std::string error_line_;  // not yet complete
};

}  // namespace hvd::cli
