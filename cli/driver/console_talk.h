// SPDX-License-Identifier: Apache-2.0
// The driver's talk with the console: the person's signals and stdin come in, notices, output and
// the status line go out. One thread.
#pragma once

#include <limits>
#include <string>

#include "cli/driver/console_link.h"
#include "cli/driver/host_feed.h"
#include "cli/driver/poll.h"
#include "cli/driver/term_sources.h"
#include "cli/job/job_state.h"

namespace hvd::cli {

// hvdrun's own words, as the console shows them.
Frame NoticeOf(const std::string& text);

class ConsoleTalk {
 public:
  // All of them outlive it.
  struct Parts {
    JobState* state;
    HostFeed* feed;
    DriverPoll* poll;
  };
  ConsoleTalk(Descriptor socket, const Parts& parts);

  void Begin();  // looks for what the console sends
  void Take();
  // A TERM that this process, or the spawner, has got.
  void TermOfHelper();

  // Goes before any output that waits.
  void Put(Frame frame);
  void Say(const std::string& text) { Put(NoticeOf(text)); }
  // Output, and what is to come behind it; Send has it go out.
  void PutInOrder(Frame frame) { console_.PutInOrder(std::move(frame)); }
  void Send();
  // Tells how much of stdin may be read, if that has changed.
  void GiveStdinRoom();
  // Tells once that the job is ending.
  void TellEnding();
  // The console has a terminal: a line says who is waited for while hosts start.
  void ShowStatus(double now);
  // Looks at all hosts, so it looks seldom; the end alone is told at once.
  void TellStatus(double now);
  double status_at() const { return status_at_; }  // when it looks again

  bool is_slow() const { return console_.is_slow(); }
  void ForgetOutput() { console_.ForgetOutput(); }
  // Waits until the console has written what it got, or given it up. It may be stopped for hours.
  void Drain();
  // Waits until all is sent.
  void Flush();

 private:
  void OnFrame(Frame* frame);
  void OnSignal(const Frame& frame, double now);
  void WaitFor(short events);

  DriverConsole console_;
  const Parts parts_;
  TermSources terms_;
  std::string status_;                                          // as told
  double status_at_ = std::numeric_limits<double>::infinity();  // when to look again
  bool shows_status_ = false;
  bool writable_watched_ = false;
  bool ending_told_ = false;
  bool drained_ = false;  // the console has written all output, or lost it
};

}  // namespace hvd::cli
