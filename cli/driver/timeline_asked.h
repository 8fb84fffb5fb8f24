// SPDX-License-Identifier: Apache-2.0
// The job's timeline: begun by hvdrun's option or by a rank's hvd_start_timeline, and who is told
// when it has begun or is whole. One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/driver/console_talk.h"
#include "cli/driver/driver_hosts.h"
#include "cli/driver/poll.h"
#include "cli/job/job_state.h"
#include "cli/link/link.h"
#include "cli/timeline/recording.h"

namespace hvd::cli {

class TimelineAsks {
 public:
  // All of them outlive it.
  struct Parts {
    const RunOptions* options;
    const DriverHosts* hosts;
    JobState* state;
    DaemonLinks* links;
    ConsoleTalk* console;
    DriverPoll* poll;
  };
  // `topology`: at the job's start.
  TimelineAsks(const Topology& topology, const Parts& parts)
      : parts_(parts), recording_(topology) {}

  DriverTimeline& recording() { return recording_; }
  const DriverTimeline& recording() const { return recording_; }

  void Begin(const std::string& path);
  // Once the file is open, or cannot be opened; once it is complete, or cannot be completed.
  void Look(double now);
  // A rank of the host asks.
  void Asked(int host, const v1::TimelineAsked& asked);
  // Tells the recording of an epoch that has started.
  void NoteEpochs();
  // Nothing comes from a host that never ran or is lost.
  void EndLostHosts();
  // The job is over, and its file is to be whole.
  void Finish(double patience_s);

 private:
  struct Ask {
    int host = 0;  // of the member that asks
    v1::TimelineAsked asked = {};
  };
  void Postpone(const Ask& ask);
  void Answer(const Ask& ask, v1::SetTimeline set);
  void Send(int host, v1::SetTimeline set);
  void AnswerEnded(const absl::Status& ended);
  void NoteBegun(const std::string& error);

  const Parts parts_;
  DriverTimeline recording_;
  std::optional<Ask> asker_;      // of the file that is being begun; none: hvdrun
  std::vector<Ask> asks_;         // that came meanwhile
  std::vector<uint64_t> enders_;  // members that wait for its end
  size_t epochs_told_ = 0;
};

}  // namespace hvd::cli
