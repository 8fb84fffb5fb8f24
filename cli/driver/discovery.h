// SPDX-License-Identifier: Apache-2.0
// Finds the hosts of an elastic job again and again, by the person's script, in the hostfile or
// by the manager whose allocation this is. The spawner runs the looks, so that neither a script nor
// a file system that hangs holds the driver up.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "cli/discovery/host_book.h"
#include "cli/discovery/look_words.h"
#include "cli/front/words/run_options.h"
#include "cli/link/frame.h"

namespace hvd::cli {

inline constexpr double kLookBoundS = 10;

struct DiscoveryHandlers {
  // The list, once what is known at the start, if anything is, then whenever it changes.
  std::function<void(const std::vector<HostSlots>&)> discovered;
  // The first look has brought no list: why.
  std::function<void(const std::string&)> failed;
  // The manager's job has ended, and with it ours: whose it was.
  std::function<void(const std::string&)> over;
  std::function<void(const std::string&)> say;
  // Sends a frame to the spawner; false: not now.
  std::function<bool(const Frame&)> ask;
};

// The driver's thread. Without elastic options, or with hosts by -H, it never looks.
class Discovery {
 public:
  Discovery(const RunOptions& options, DiscoveryHandlers handlers);

  double deadline() const { return next_at_; }
  // When the deadline has come, and at the beginning.
  void Tick(double now);
  // A kLookText or kLookEnded of the spawner's.
  void Heard(const Frame& frame, double now);
  // Nobody is to come or go any more.
  void Stop() { stopped_ = true, next_at_ = std::numeric_limits<double>::infinity(); }

 private:
  void Judge(const Frame& ended);
  std::string Explain(const FailedLook& look) const;
  void Pass(const HostNews& news);

  const DiscoveryHandlers handlers_;
  const ElasticOptions elastic_;
  const std::string manager_;
  HostBook book_;
  std::vector<std::string> command_;  // empty: there is nothing to look at
  double next_at_;
  bool told_ = false;  // what was known at the start
  bool stopped_ = false;
  std::string text_;  // of the look that runs, so far
};

}  // namespace hvd::cli
