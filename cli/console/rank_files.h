// SPDX-License-Identifier: Apache-2.0
// The ranks' output in files on this host, as horovodrun has it: DIR/rank.N/stdout and stderr, N
// with as many digits as the last rank. A thread of its own writes them: a file system that hangs
// holds nobody else.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace hvd::cli {

// "rank.07" of 10 to 100 ranks.
std::string RankFolder(int rank, int ranks);

// Used by the console's one thread.
class RankFiles {
 public:
  // `bell` is an event fd: rung when all that was given is written, and when writing fails. Throws
  // std::system_error where this machine gives no thread.
  RankFiles(std::string directory, int ranks, int bell);
  ~RankFiles();  // does not wait for the thread: it may never come back

  // `end`: the file is there from then on, be it empty.
  void Put(int rank, bool is_stderr, std::string_view bytes, bool end);
  // Bytes, and ends, that were given and are not written yet; 0 once it has failed.
  size_t waiting() const;
  // The job ends, and `seconds` have gone by in which they could have been written: given up when
  // nothing is for `patience`.
  void Age(double seconds, double patience);
  // Why not all is in the files; empty: all is, or will be.
  std::string failure() const;

 private:
  struct Inside;
  const std::shared_ptr<Inside> inside_;
  uint64_t progress_ = 0;  // at the last look
  double idle_s_ = 0;      // since then nothing was written
};

}  // namespace hvd::cli
