// SPDX-License-Identifier: Apache-2.0
// hvdrun's stdin on its way into the chosen ranks' pipes: a bounded queue, credit when all of them
// have taken a piece. Loop thread only.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/descriptor.h"
#include "base/loop.h"

namespace hvd::daemon {

class StdinFeed {
 public:
  // `on_taken`: so many more bytes have been written (or nobody is left to take them).
  StdinFeed(Loop* loop, std::function<void(uint64_t)> on_taken);

  void Add(int local_rank, Descriptor pipe);
  void Remove(int local_rank);
  void Feed(const std::string& data, bool end);

 private:
  struct Reader {
    Descriptor pipe;
    size_t written = 0;  // of queue_
    bool waiting = false;
  };

  void Write(int local_rank);
  void Settle();

  Loop* const loop_;
  const std::function<void(uint64_t)> on_taken_;
  std::string queue_;  // what not every reader has taken
  bool ended_ = false;
  std::map<int, Reader> readers_;
};

}  // namespace hvd::daemon
