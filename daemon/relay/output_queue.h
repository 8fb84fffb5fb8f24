// SPDX-License-Identifier: Apache-2.0
// Between the relay, which reads the ranks' pipes, and link A, which sends what it read: one
// bounded buffer a stream and the credit of the link. A monitor: any thread may call any method.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "proto/credit_window.h"

namespace hvd::daemon {

struct OutputPiece {
  int stream = 0;       // index: 2 * slot, + 1 for stderr; or TimelineStream
  uint64_t member = 0;  // whose it was when it was pushed; 0 of the timeline
  std::string data;
  uint64_t skipped_lines = 0;    // left out behind `data`
  bool recording_ended = false;  // behind `data`
  bool end = false;
  std::string file_lost = {};  // with end: why the rank's file has not all of the stream
};

class OutputQueue {
 public:
  static constexpr size_t kRoom = 1 << 20;  // a stream
  // The host's timeline follows the ranks' streams.
  static constexpr int TimelineStream(int slots) { return 2 * slots; }

  // Before anything is pushed; link A may be waiting already. `on_room` is called, from the taker's
  // thread, when a full stream has room again.
  void Begin(int streams, std::function<void(int stream)> on_room);

  // From now on the stream is this member's. Output that is left of the member before is still sent
  // as that one's.
  void Reopen(int stream, uint64_t member);

  size_t Room(int stream) const;
  // Takes all of `data`, also beyond the room: the caller bounds what it reads.
  void Push(int stream, std::string_view data);
  // `lines` lines were left out behind what is queued now.
  void Skip(int stream, uint64_t lines);
  // The recording of the timeline has ended behind what is queued now.
  void EndRecording(int stream);
  // `file_lost`: why its file has not all of it; empty: it has, or there is none.
  void PushEnd(int stream, std::string file_lost = "");

  // Waits for something to send and credit for it. False: closed.
  bool Take(OutputPiece* piece);
  void Acked(uint64_t total);
  // Ends Take for good.
  void Close();

 private:
  struct Stream {
    uint64_t member = 0;
    std::string data;
    uint64_t skipped_lines = 0;
    bool recording_ended = false;
    size_t marked_at = 0;  // bytes of `data` before either of them
    bool ended = false;
    bool end_sent = false;
    std::string file_lost;
    bool wants_room = false;
    bool marked() const { return skipped_lines != 0 || recording_ended; }
    bool has_work() const { return !data.empty() || marked() || (ended && !end_sent); }
  };

  struct Former {
    int index = 0;
    Stream stream;
  };

  int NextWithWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The stream to send from, for which there is credit; -1: none.
  int NextToSend() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MaySend(const Stream& stream) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // From a stream whose member has gone, if there is one, and credit.
  bool CutFormer(OutputPiece* piece) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Cut(int index, Stream* from, OutputPiece* piece) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  Condition changed_;
  std::function<void(int)> on_room_ ABSL_GUARDED_BY(mutex_);
  mutable std::vector<Stream> streams_ ABSL_GUARDED_BY(mutex_);
  std::deque<Former> former_ ABSL_GUARDED_BY(mutex_);  // sent before the others
  CreditWindow window_ ABSL_GUARDED_BY(mutex_);
  size_t turn_ ABSL_GUARDED_BY(mutex_) = 0;  // streams take turns
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hvd::daemon
