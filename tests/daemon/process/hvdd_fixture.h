// SPDX-License-Identifier: Apache-2.0
// A real hvdd on a socket pair and a link A client that remembers all it hears.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "hvd/v1/link_a.pb.h"
#include "tests/support/eventually.h"

namespace hvd::daemon {

struct HvddOptions {
  std::string containment = "auto";
  bool ordinary_user = false;  // uid 65534, where the caller is root
  bool few_rights = false;     // root without the right to exceed limits
  bool pipes = false;          // stdin and stdout as two pipes, as sshd hands out
  bool beats = true;           // false: a driver that has fallen silent
};

// All that starts a job on one host: member n is rank n - 1, in slot n - 1.
struct HvddLaunch {
  v1::PrepareHost prepare;
  v1::EpochPropose propose;
  v1::SpawnSlots spawn;
};

class Hvdd {
 public:
  explicit Hvdd(HvddOptions options = {});
  ~Hvdd();  // closes the link; kills what is left of the job

  int pid() const { return pid_; }
  int shim_pid() const;
  const std::string& job() const { return job_; }
  const std::string& hello() const { return hello_; }

  // A launch of `ranks` ranks of `argv` on one host, to be changed before it is sent.
  HvddLaunch MakeLaunch(int ranks, std::vector<std::string> argv) const;
  void Send(const v1::Command& command);
  void Launch(const HvddLaunch& launch);
  void Propose(const v1::EpochPropose& propose);
  void Launch(int ranks, std::vector<std::string> argv) { Launch(MakeLaunch(ranks, argv)); }
  void Stop(bool kill = false);

  // Waits up to Patient(`seconds`), as all that follows, for an event of the kind (the n-th).
  std::optional<v1::Event> Await(v1::Event::KindCase kind, int nth = 1, double seconds = 10);
  // … for the exit of a rank.
  std::optional<v1::RankExited> AwaitExit(int rank, double seconds = 10);
  int Count(v1::Event::KindCase kind);
  // Waits for the end of a rank's stream and gives all of it.
  std::string AwaitOutput(int rank, bool is_stderr = false, double seconds = 10);
  // Returns what has come so far.
  std::string Output(int rank);
  // No acknowledgements any more: a console that is stopped.
  void StopAcking();
  // Nobody takes the console's output: whole lines that a rank's file has may be left out.
  void SkipOutput();
  double longest_beat_gap();

  void Close();  // the driver dies
  bool AwaitExitOfDaemon(double seconds);

  // Living processes of the job, found by its mark.
  std::vector<int> JobProcesses() const;
  // Waits until there are none.
  bool AwaitNothingLeft(double seconds) const;
  // Waits until there are at least `count`.
  bool AwaitJobProcesses(size_t count, double seconds) const;

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
  int pid_ = -1;
  std::string job_, hello_;
};

// Containment levels that work here for this kind of user.
std::vector<std::string> WorkingLevels(bool ordinary_user);

}  // namespace hvd::daemon
