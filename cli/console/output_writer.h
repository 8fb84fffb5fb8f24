// SPDX-License-Identifier: Apache-2.0
// One of hvdrun's own outputs and the thread that writes it: a reader that does not read, a
// terminal that is held (Ctrl-S) or a file system that hangs holds that thread alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace hvd::cli {

// Thread-safe.
class OutputWriter {
 public:
  // `bell` is an event fd: rung when all that was given is written, and when writing fails. Throws
  // std::system_error where this machine gives no thread.
  OutputWriter(int fd, int bell);
  ~OutputWriter();  // does not wait for the thread: it may never come back

  void Put(std::string_view bytes);
  // Bytes that were given and are not written yet.
  size_t waiting() const;
  // Differs from call to call while the reader takes something, be it a byte of a full pipe.
  uint64_t progress() const;
  // The errno of the write that failed; 0: none. Nothing is written after it.
  int error() const;
  // Forgets what waits and returns how many bytes that was.
  size_t Drop();

 private:
  struct Inside;
  const std::shared_ptr<Inside> inside_;
};

}  // namespace hvd::cli
