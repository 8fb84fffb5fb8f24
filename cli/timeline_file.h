// The timeline's file, on a thread of its own ("hvdrun-timeline"), so that a slow or hung file
// system holds up neither beats nor output.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "cli/descriptor.h"
#include "cli/timeline_book.h"

namespace hvd {

class TimelineFile {
 public:
  explicit TimelineFile(const Topology& topology);
  // Does not wait for a write that hangs: Finish does, as long as it is told.
  ~TimelineFile();

  // Begins `path`; one that is open ends. An error says why it cannot be written.
  absl::Status Begin(const std::string& path);
  void End();
  // A piece of a host's stream. When too much waits to be written, the timeline
  // ends here.
  void Take(int host, std::string bytes, int64_t offset_ns);
  // Ends the file; waits until everything is written, at most `seconds`. Says what went wrong, or
  // nothing.
  std::string Finish(double seconds);

 private:
  struct Work {
    enum Kind { kBegin, kEnd, kTake, kFinish } kind;
    int host = 0;
    std::string bytes;  // kTake: frames; kBegin: the path
    int64_t offset_ns = 0;
    int fd = -1;  // kBegin: the open file
  };
  // The thread's own; it outlives this object when a write hangs.
  struct Inside;
  void Put(Work work);

  const std::shared_ptr<Inside> inside_;
};

}  // namespace hvd
