// SPDX-License-Identifier: Apache-2.0
// The driver's part of the timeline: the hosts' clocks, their streams, and who asked for what.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/link/clock_offset.h"
#include "cli/timeline/file.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd::cli {

class DriverTimeline {
 public:
  explicit DriverTimeline(const Topology& topology) : topology_(topology) {}

  void AddHost() { hosts_.emplace_back(); }  // the next
  // Recording shall go to `path`, which a thread opens; not while another one is being begun.
  // TakeBegun has the outcome when event_fd() has had an edge, and an error at deadline() at the
  // latest: then everything goes on as before.
  void Begin(const std::string& path, double now);
  std::optional<absl::Status> TakeBegun(double now);
  bool beginning() const { return !beginning_.empty(); }
  double deadline() const { return std::min(begin_until_, end_until_); }
  int event_fd() const { return file_->event_fd(); }  // once Begin was called
  // Recording ends when each host whose link is open has said its last and can be placed in time.
  // When all that is in the file, TakeEnded has the outcome, as TakeBegun has.
  void BeginEnd();
  std::optional<absl::Status> TakeEnded(double now);
  // Sets which member is which rank from now on.
  void BeginEpoch(TimelineEpoch epoch);
  void Heard(int host, const BeatRoundTrip& trip);
  // A chunk of a host's timeline stream.
  void Take(int host, v1::OutputChunk* chunk);
  void HostEnded(int host);  // its link is no more

  bool on() const { return on_; }
  bool ending() const { return ending_; }
  const std::string& path() const { return path_; }
  // Something of the hosts' streams is still to come.
  bool open() const;
  std::string Finish(double seconds);

 private:
  struct Host {
    ClockOffset clock;
    std::string early;  // came before the first round trip
    bool ended = false;
    bool marked = false;  // said its last since BeginEnd
  };
  void Pass(int host, std::string bytes);
  void EndIfAllMarked();

  const Topology topology_;           // at the job's start
  TimelineEpoch epoch_;               // the newest; number 0: members stay
  std::optional<TimelineFile> file_;  // none until it is asked for: it has a thread
  std::vector<Host> hosts_;
  std::string path_;
  std::string beginning_;  // the path that is being begun; empty: none
  double begin_until_ = std::numeric_limits<double>::infinity();
  bool on_ = false;
  bool ending_ = false;
  bool all_marked_ = false;  // ending_, and only the file is to be waited for
  double end_until_ = std::numeric_limits<double>::infinity();
};

}  // namespace hvd::cli
