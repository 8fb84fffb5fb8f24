// The driver's part of the timeline: the hosts' clocks, their streams, and who asked for what.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/clock_offset.h"
#include "cli/timeline_file.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd {

class DriverTimeline {
 public:
  explicit DriverTimeline(const Topology& topology);

  // Recording goes to `path` from now on. An error says why not.
  absl::Status Begin(const std::string& path);
  // Recording ends when each host whose link is open has said its last and can be placed in time;
  // then one of the next three returns true, once.
  void BeginEnd();
  bool Heard(int host, const BeatRoundTrip& trip);
  // A chunk of a host's timeline stream.
  bool Take(int host, v1::OutputChunk* chunk);
  bool HostEnded(int host);  // its link is no more

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
  bool EndIfAllMarked();

  const Topology topology_;
  std::optional<TimelineFile> file_;  // none until it is asked for: it has a thread
  std::vector<Host> hosts_;
  std::string path_;
  bool on_ = false;
  bool ending_ = false;
};

}  // namespace hvd
