// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a stand-in's communicator meet: memory that their processes share, found by
// the communicator's id. Everything is buffered, so a rank waits for what it needs and for nothing
// else. One thread of each rank at a time; Leave from any.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hvd::rt {

class NcclMeeting {
 public:
  // `name` is a file's. The last rank that has come removes it, or the first that goes before.
  NcclMeeting(const std::string& name, int ranks, int rank);
  ~NcclMeeting();
  NcclMeeting(const NcclMeeting&) = delete;
  NcclMeeting& operator=(const NcclMeeting&) = delete;

  bool valid() const { return shared_ != nullptr; }
  int ranks() const { return ranks_; }
  int rank() const { return rank_; }

  bool all_there() const;
  // Waits until all are there. False: this rank has left meanwhile, as for the next two.
  bool Arrive();
  // Gives bytes to `to`, which may take them later.
  bool Send(int to, const char* bytes, size_t count);
  bool Receive(int from, char* bytes, size_t count);
  // This rank takes no further part: its waits end. The others wait for ever, as with NCCL.
  void Leave() { left_ = true; }

 private:
  struct Shared;
  struct Box;
  Box& BoxOf(int from, int to) const;
  template <class Ready>
  bool Await(Ready ready) const;

  const std::string name_;
  const int ranks_, rank_;
  Shared* shared_ = nullptr;
  size_t bytes_ = 0;
  std::atomic<bool> left_{false};
};

}  // namespace hvd::rt
