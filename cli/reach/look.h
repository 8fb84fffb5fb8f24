// SPDX-License-Identifier: Apache-2.0
// A command of the person's that prints the hosts of the job, while it runs. A keeper stands
// between it and the spawner, so that nothing of it outlives the look: see look_keeper.h.
#pragma once

#include <poll.h>

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/descriptor.h"
#include "cli/link/frame.h"
#include "cli/reach/execute.h"

namespace hvd::cli {

// The spawner owns one and turns it; at most one command runs at a time.
class LookProcess {
 public:
  // The command has no stdin. `bound_s`: how long it may take. Returns what failed, with errno;
  // empty for success. Not while one runs.
  absl::string_view Start(Execution command, double bound_s);
  bool running() const { return pidfd_.valid(); }

  void AddWaits(std::vector<pollfd>* waits) const;
  // When Turn has something to do although nothing was heard.
  double deadline() const { return running() ? due_ : std::numeric_limits<double>::infinity(); }
  // Takes what it has printed. Frames for the driver come when it has ended.
  std::vector<Frame> Turn(double now);

  // Asks the keeper to end the command, and what it has started, at once.
  void End();
  // Ends the keeper itself, and waits for it.
  void Kill();

 private:
  void TakeOutput();
  void TakeErrors();
  void Overdue(double now);
  std::vector<Frame> Ended(int wait_status);

  pid_t keeper_ = -1;
  Descriptor pidfd_, output_, errors_;
  LookEnd end_ = LookEnd::kEnded;
  double due_ = 0;
  std::string text_;   // of stdout
  std::string words_;  // the last ones of stderr
};

}  // namespace hvd::cli
