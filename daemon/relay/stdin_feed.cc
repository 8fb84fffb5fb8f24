// SPDX-License-Identifier: Apache-2.0
#include "daemon/relay/stdin_feed.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

namespace hvd::daemon {

StdinFeed::StdinFeed(Loop* loop, std::function<void(uint64_t)> on_taken)
    : loop_(loop), on_taken_(std::move(on_taken)) {}

void StdinFeed::Add(int local_rank, Descriptor pipe) {
  readers_[local_rank].pipe = std::move(pipe);
  Write(local_rank);
}

void StdinFeed::Remove(int local_rank) {
  const auto found = readers_.find(local_rank);
  if (found == readers_.end()) return;
  loop_->Forget(found->second.pipe.get());
  readers_.erase(found);
  Settle();
}

void StdinFeed::Feed(const std::string& data, bool end) {
  queue_ += data;
  ended_ = ended_ || end;
  std::vector<int> ranks;
  for (const auto& [rank, reader] : readers_) ranks.push_back(rank);
  for (const int rank : ranks) Write(rank);
  Settle();
}

void StdinFeed::Write(int local_rank) {
  const auto found = readers_.find(local_rank);
  if (found == readers_.end()) return;
  Reader& reader = found->second;
  while (reader.written < queue_.size()) {
    const ssize_t n =
        write(reader.pipe.get(), queue_.data() + reader.written, queue_.size() - reader.written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      if (!std::exchange(reader.waiting, true)) {
        loop_->Watch(reader.pipe.get(), EPOLLOUT, [this, local_rank](uint32_t) {
          Write(local_rank);
          Settle();
        });
      }
      return;
    }
    if (n < 0) return Remove(local_rank);  // it has closed its stdin
    reader.written += n;
  }
  if (std::exchange(reader.waiting, false)) loop_->Forget(reader.pipe.get());
  if (ended_) Remove(local_rank);
}

void StdinFeed::Settle() {
  size_t taken = queue_.size();
  for (const auto& [rank, reader] : readers_) taken = std::min(taken, reader.written);
  if (taken == 0) return;
  queue_.erase(0, taken);
  for (auto& [rank, reader] : readers_) reader.written -= taken;
  on_taken_(taken);
}

}  // namespace hvd::daemon
