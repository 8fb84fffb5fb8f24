// SPDX-License-Identifier: Apache-2.0
// One output file with a writer thread of its own, so that a hung file system blocks nobody else.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/descriptor.h"
#include "base/loop.h"
#include "base/mutex.h"

namespace hvd::daemon {

struct FileSinkOptions {
  std::string base;       // made with its parents, for this user alone, as is …
  std::string directory;  // … the one below it, and the file in that
  std::string name;
  std::function<void()> on_room;             // writer thread: a full queue has room again
  std::function<void(std::string)> on_fail;  // writer thread, once: the file is given up, and why
  // Writer thread, once, after Close or Finish: all is written, or given up. May be empty.
  std::function<void()> on_finished = {};
  bool appends = false;  // to what the file holds
  bool shared = false;   // others write to its end meanwhile
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
  // Bytes that come from now on go to the end of the file of this name in another directory.
  void MoveTo(std::string directory);
  // Every byte so far is or will be in the file.
  bool healthy() const;
  // Why not all is in the file; empty: all is, or will be.
  std::string failure() const;
  // No more comes; on_finished tells when that is written.
  void Close();
  std::string path() const;
  // No more comes. False: not all was written by `deadline`. One thread at a time.
  bool Finish(TimePoint deadline);

 private:
  void Write();
  // Bytes that go to the same file; where `open` is set, another than the one before.
  struct Batch {
    std::optional<FileSinkOptions> open;
    std::string bytes;
  };
  // The file that the writer has open.
  struct Target {
    std::string path;
    Descriptor file;
  };
  void WriteQueue(Target* target);
  bool WriteBatch(const Batch& batch, Target* target);
  bool CloseFile(Target* target);
  static absl::StatusOr<int> Open(const FileSinkOptions& place);
  void Fail(const Target& target, absl::string_view what, absl::string_view reason);

  const FileSinkOptions options_;
  mutable Mutex mutex_;
  Condition changed_;
  std::string directory_ ABSL_GUARDED_BY(mutex_);  // of what comes now
  std::deque<Batch> queue_ ABSL_GUARDED_BY(mutex_);
  size_t queued_ ABSL_GUARDED_BY(mutex_) = 0;  // bytes of it
  bool wants_room_ ABSL_GUARDED_BY(mutex_) = false;
  std::string failure_ ABSL_GUARDED_BY(mutex_);  // empty: none
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread writer_;
};

}  // namespace hvd::daemon
