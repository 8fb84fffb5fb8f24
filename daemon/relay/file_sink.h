// One output file with a writer thread of its own, so that a hung file system blocks nobody else.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "daemon/loop.h"

namespace hvd {

struct FileSinkOptions {
  std::string directory;  // made with its parents, 0700
  std::string name;
  std::function<void()> on_room;             // writer thread: a full queue has room again
  std::function<void(std::string)> on_fail;  // writer thread, once: the file is given up, and why
};

// Thread-safe.
class FileSink {
 public:
  static constexpr size_t kRoom = 1 << 20;

  explicit FileSink(FileSinkOptions options);
  // Writes what is queued, then closes. Call Finish first where a hung file system must not hold
  // the caller.
  ~FileSink();

  // Bytes that Append may be given; endless once the file has been given up. Zero asks for on_room.
  size_t Room();
  void Append(std::string_view data);
  // Every byte so far is or will be in the file.
  bool healthy() const;
  // No more comes. False: not all was written by `deadline`. One thread at a time.
  bool Finish(TimePoint deadline);

 private:
  void Write();
  int Open();
  void Fail(const std::string& what);

  const FileSinkOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::string queue_;
  bool wants_room_ = false;
  bool failed_ = false;
  bool finishing_ = false;
  bool finished_ = false;

  std::thread writer_;
};

}  // namespace hvd
