// Between the relay, which reads the ranks' pipes, and link A, which sends what it read: one bounded
// buffer a stream and the credit of the link. A monitor: any thread may call any method.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/relay/credit_window.h"

namespace hvd {

struct OutputPiece {
  int stream = 0;  // index: 2 * local rank, + 1 for stderr
  std::string data;
  uint64_t skipped_lines = 0;  // left out before `data`
  bool end = false;
};

class OutputQueue {
 public:
  static constexpr size_t kRoom = 1 << 20;  // a stream

  // `on_room` is called, from the taker's thread, when a full stream has room again.
  OutputQueue(int streams, std::function<void(int stream)> on_room);

  size_t Room(int stream) const;
  // Takes all of `data`, also beyond the room: the caller bounds what it reads.
  void Push(int stream, std::string_view data);
  // `lines` lines were left out here.
  void Skip(int stream, uint64_t lines);
  void PushEnd(int stream);

  // Waits for something to send and credit for it. False: closed.
  bool Take(OutputPiece* piece);
  void Acked(uint64_t total);
  // Ends Take. What is queued stays; an `Open`ed queue goes on.
  void Close();
  void Open();

 private:
  struct Stream {
    std::string data;
    uint64_t skipped_lines = 0;
    bool ended = false;
    bool end_sent = false;
    bool wants_room = false;
    bool has_work() const { return !data.empty() || (ended && !end_sent); }
  };

  int NextWithWork() const;
  bool Cut(int index, OutputPiece* piece);

  const std::function<void(int)> on_room_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // All guarded by mutex_.
  mutable std::vector<Stream> streams_;
  CreditWindow window_;
  size_t turn_ = 0;  // streams take turns
  bool closed_ = false;
};

}  // namespace hvd
