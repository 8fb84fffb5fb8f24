// SPDX-License-Identifier: Apache-2.0
// The timeline's file, opened and written on a thread of its own ("hvdrun-timeline"), so that a
// slow or hung file system holds up neither beats nor output.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "base/descriptor.h"
#include "cli/timeline/book.h"

namespace hvd::cli {

class TimelineFile {
 public:
  explicit TimelineFile(const Topology& topology);
  // Does not wait for a write that hangs: Finish does, as long as it is told.
  ~TimelineFile();

  // Begins `path`; then one that is open ends. TakeBegun has the outcome when event_fd() has had an
  // edge, and so has TakeEnded that of End.
  void Begin(const std::string& path);
  // The outcome of the last Begin, once: an error says why `path` cannot be written, and changes
  // nothing else.
  std::optional<absl::Status> TakeBegun();
  // Nobody waits for the last Begin any more: it shall change nothing.
  void GiveUpBegin();
  int event_fd() const;
  void End();
  // The outcome of the last End, once everything before it is written: an error says what is
  // missing in the file.
  std::optional<absl::Status> TakeEnded();
  // A piece of a host's stream. When too much waits to be written, the timeline
  // ends here.
  void Take(int host, std::string bytes, int64_t offset_ns);
  // Sets which member is which rank from now on.
  void BeginEpoch(TimelineEpoch epoch);
  // Ends the file; waits until everything is written, at most `seconds`. Says what went wrong, or
  // nothing.
  std::string Finish(double seconds);

 private:
  struct Work {
    enum Kind { kBegin, kEnd, kTake, kEpoch, kFinish } kind;
    int host = 0;
    std::string bytes = {};  // kTake: frames; kBegin: the path
    int64_t offset_ns = 0;
    uint64_t number = 0;       // kBegin, kEnd: which of them it is
    TimelineEpoch epoch = {};  // kEpoch
  };
  // The thread's own; it outlives this object when a write hangs.
  struct Inside;
  void Put(Work work);

  const std::shared_ptr<Inside> inside_;
};

}  // namespace hvd::cli
