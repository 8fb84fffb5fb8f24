// SPDX-License-Identifier: Apache-2.0
// hvdrun's driver and spawner as real processes around a fake daemon, the test in the console's
// place.
#pragma once

#include <string>
#include <vector>

#include "cli/front/words/run_options.h"
#include "cli/link/frame.h"

namespace hvd::cli {

struct JobOutcome {
  bool finished = false;  // a verdict came
  int exit_code = -1;
  std::string verdict;
  std::string out;
  std::string err;
  std::string notices;
  double seconds = 0;
};

// Options of a job whose hosts ("a:2,b:1") are all "local", that is: started without ssh.
RunOptions FakeOptions(const std::string& hosts, int np, std::vector<std::string> command);

class FakeJob {
 public:
  // `fault` and other settings reach the fake daemon by the environment.
  FakeJob(RunOptions options, std::vector<std::string> environment = {});
  ~FakeJob();  // kills what is left of it

  // Plays the console until the verdict comes or the driver is gone; at most
  // Patient(`seconds`).
  JobOutcome Wait(double seconds = 20);
  // Reads frames until a notice or output holds `text`. False: the driver ended before.
  bool WaitFor(const std::string& text);
  void Send(Frame frame);
  void CloseConsole() { console_.Reset(); }

  pid_t driver() const { return driver_; }
  pid_t spawner() const { return spawner_; }
  // Whether both helpers and all their children end within Patient(`seconds`).
  bool AllGone(double seconds);

 private:
  bool TakeOne(double until);
  std::string pending_text() const { return outcome_.out + outcome_.err + outcome_.notices; }

  RunOptions options_;
  Descriptor console_;
  pid_t driver_ = -1;
  pid_t spawner_ = -1;
  std::string mark_;  // in the environment of all of them
  JobOutcome outcome_;
  uint64_t output_taken_ = 0;
  double began_ = 0;
};

}  // namespace hvd::cli
