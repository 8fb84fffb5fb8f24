// SPDX-License-Identifier: Apache-2.0
// The workers' stdin, stdout and stderr. Reads their pipes on its own thread ("hvdd-relay"): to the
// per-rank file first, then to the OutputQueue; keeps the last lines for the verdict.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "base/loop.h"
#include "daemon/relay/file_sink.h"
#include "daemon/relay/line_tail.h"
#include "daemon/relay/output_queue.h"
#include "daemon/relay/stdin_feed.h"
#include "proto/deadlines.h"

namespace hvd::daemon {

struct RelayOptions {
  int slots = 0;  // places for workers on this host
  // Slots are used again. A worker's drained output then means that its files are written, too.
  bool elastic = false;
  bool to_console = true;
  std::string directory;  // of per-rank files; empty: none
  // Relay thread.
  std::function<void(int slot, std::vector<std::string> last_lines)> on_drained;
  std::function<void(uint64_t bytes)> on_stdin_credit;
  std::function<void()> on_files_ended;        // no file is being written any more
  std::function<void(std::string)> on_notice;  // also from a sink's thread
};

// A worker's output and input, as hvdd holds them.
struct WorkerPipes {
  int rank = 0;   // at its start, for the names of its files
  Descriptor in;  // invalid where stdin is /dev/null
  Descriptor out, err;
  bool keeps_files = false;  // of the rank: another worker has written to them
};

class Relay {
 public:
  // `queue` outlives the relay.
  Relay(RelayOptions options, OutputQueue* queue);
  ~Relay();

  // The slot is this member's now; the one before it has drained. Any thread, as all below.
  void Begin(int slot, uint64_t member);
  // Takes over the pipes of the worker in `slot`.
  void Adopt(int slot, WorkerPipes pipes);
  // The worker in `slot` has another rank now: what it says from now on goes to that one's files.
  void Renumber(int slot, int rank);
  // The worker's process is gone: what its pipes still hold is read, then on_drained is called.
  void RankGone(int slot);
  void FeedStdin(std::string data, bool end);
  // Whether hvdrun's stdout, or stderr, may lack whole lines that a rank's file has. Otherwise a
  // worker waits for both.
  void SetSkipping(bool out, bool err);
  // The job is being stopped: no file is waited for any longer than its stop bears.
  void Hurry();
  // Once every rank's end has been told, it only falls.
  int open_files() const { return open_files_; }
  // Stops reading and writes out the files, at most until `deadline`. The last call.
  void FinishFiles(TimePoint deadline);

 private:
  struct Stream {
    Descriptor pipe;
    uint64_t member = 0;
    int rank = 0;  // of its worker, at its start
    bool keeps_file = false;
    bool opened = false;    // it had a pipe
    bool given_up = false;  // the file system does not answer
    TimePoint file_closed;  // since then the end of its file is waited for
    std::string file_lost;  // why the file lacks something
    std::unique_ptr<FileSink> sink;
    bool file_open = false;  // not all of it is known to be written
    bool reading = true;     // watched for input
    bool skipping = false;   // the console is behind; the file has everything
    bool at_line_start = true;
    uint64_t skipped = 0;  // newlines left out since `skipping`
  };
  struct Rank {
    LineTail out_tail, err_tail;
    bool gone = false;
    bool ended = false;    // no more is read
    bool drained = false;  // told
    size_t allowance = 0;  // bytes that may still go beyond the room once the rank is gone
    TimePoint last_data, give_up;
  };

  void StopReading();
  void Open(int index, Descriptor pipe);
  void OnReadable(int index);
  size_t RoomFor(int index);
  bool MaySkip(const Stream& stream, int index) const;
  void Take(int index, std::string_view data);
  void ToConsole(int index, std::string_view data);
  void Resume(int index);
  void Pause(int index);
  void End(int index);
  void AwaitFile(int index, uint64_t member);
  void FileEnded(int index, uint64_t member);
  void CheckDrained(int slot);
  void EndBoth(int slot);
  void TellDrained(int slot);
  FileSinkOptions SinkOptions(int index);

  const RelayOptions options_;
  Loop loop_;
  OutputQueue* const queue_;
  std::vector<Stream> streams_;  // 2 * slot, + 1 for stderr
  std::vector<Rank> ranks_;      // by slot
  std::set<int> begun_files_;    // ranks whose files a worker has begun here
  // Given up, of workers whose slots others have now: a hung file system holds their threads.
  std::vector<std::unique_ptr<FileSink>> former_sinks_;
  std::atomic<int> open_files_{0};  // of streams
  std::array<bool, 2> skipping_{};  // by whether it is stderr
  Clock::duration file_patience_ = kFilePatience;
  StdinFeed stdin_;
  std::thread thread_;
};

}  // namespace hvd::daemon
