// SPDX-License-Identifier: Apache-2.0
// What the person gives to hosts: hvdrun's stdin, as fast as the slowest of its readers takes it,
// and which output the hosts may skip. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/driver/driver_hosts.h"
#include "cli/job/job_state.h"
#include "cli/link/link.h"

namespace hvd::cli {

class HostFeed {
 public:
  // All of them outlive it.
  struct Parts {
    DriverHosts* hosts;
    const JobState* state;
    DaemonLinks* links;
  };
  // `reader`: who gets stdin, as in RunOptions.
  HostFeed(int reader, const Parts& parts) : reader_(reader), parts_(parts) {}

  // Hosts have been told to launch, those first that are there now.
  void Launched();
  bool launched() const { return launched_; }

  void Give(std::string bytes, bool end);
  // The host's readers have taken so much more.
  void Taken(int host, uint64_t bytes) { parts_.hosts->ports[host].stdin_taken += bytes; }
  // Up to which byte stdin may be read by now. None: that is known already, or nobody reads it.
  std::optional<uint64_t> NextRoom();

  // `skips`: of kMaySkip.
  void MaySkip(uint64_t skips);
  // Tells a host that is new.
  void TellSkips(int host);

 private:
  bool Reads(int host) const;
  void SendSkips(int host);

  const int reader_;
  const Parts parts_;
  int first_hosts_ = 0;  // that were there at the launch: who comes later has missed some of stdin
  uint64_t room_ = 0;    // as told
  uint64_t skips_ = 0;
  bool launched_ = false;
};

}  // namespace hvd::cli
