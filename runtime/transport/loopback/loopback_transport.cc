// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/loopback/loopback_transport.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <tuple>

#include "absl/strings/str_format.h"
#include "base/mutex.h"

namespace hvd::rt {
namespace {

struct Message {
  std::vector<std::byte> data;
};

// A posted receive; completed by the sender's thread, under the mutex.
struct Posted {
  void* to = nullptr;
  size_t bytes = 0;
  bool done = false;
  absl::Status status;
};

}  // namespace

class LoopbackMailboxes {
 public:
  explicit LoopbackMailboxes(int size) : ranks_(size) {}

  int size() const { return static_cast<int>(ranks_.size()); }

  void Send(int from, int to, MessageTag tag, const void* data, size_t bytes) {
    const MutexLock lock(&mutex_);
    Queue& queue = queues_[{from, to, tag.channel, tag.step}];
    if (!queue.posted.empty()) {
      Deliver(queue.posted.front().get(), data, bytes);
      queue.posted.pop_front();
    } else {
      const auto* begin = static_cast<const std::byte*>(data);
      queue.arrived.push_back({{begin, begin + bytes}});
    }
    ranks_[to].Wake();
  }

  std::shared_ptr<Posted> Receive(int from, int to, MessageTag tag, void* data, size_t bytes) {
    auto posted = std::make_shared<Posted>(Posted{data, bytes, false, absl::OkStatus()});
    const MutexLock lock(&mutex_);
    Queue& queue = queues_[{from, to, tag.channel, tag.step}];
    if (queue.arrived.empty()) {
      queue.posted.push_back(posted);
    } else {
      const Message message = std::move(queue.arrived.front());
      queue.arrived.pop_front();
      Deliver(posted.get(), message.data.data(), message.data.size());
    }
    return posted;
  }

  absl::StatusOr<bool> IsDone(const Posted& posted) {
    const MutexLock lock(&mutex_);
    if (!posted.status.ok()) return posted.status;
    return posted.done;
  }

  void Cancel(const std::shared_ptr<Posted>& posted) {
    const MutexLock lock(&mutex_);
    if (posted->done) return;
    for (auto& [key, queue] : queues_) std::erase(queue.posted, posted);
  }

  // The memory of the receives that `rank` has posted stays untouched.
  void CancelAll(int rank) {
    const MutexLock lock(&mutex_);
    for (auto& [key, queue] : queues_) {
      if (std::get<1>(key) == rank) queue.posted.clear();
    }
  }

  bool TakeNews(int rank) { return ranks_[rank].TakeNews(); }
  bool HasNews(int rank) const { return ranks_[rank].has_news; }
  int EventFd(int rank) const { return ranks_[rank].event_fd; }

 private:
  struct Queue {
    std::deque<Message> arrived;
    std::deque<std::shared_ptr<Posted>> posted;
  };
  struct Rank {
    Rank() : event_fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
    ~Rank() { close(event_fd); }
    // News before the descriptor: who finds no news has a wake-up coming.
    void Wake() {
      has_news = true;
      const uint64_t one = 1;
      [[maybe_unused]] const ssize_t n = write(event_fd, &one, sizeof(one));
    }
    bool TakeNews() {
      if (!has_news.exchange(false)) return false;
      uint64_t count = 0;
      [[maybe_unused]] const ssize_t n = read(event_fd, &count, sizeof(count));
      return true;
    }
    std::atomic<bool> has_news{false};
    const int event_fd;
  };

  static void Deliver(Posted* posted, const void* data, size_t bytes) {
    posted->done = true;
    if (bytes != posted->bytes) {
      posted->status = absl::InternalError(absl::StrFormat(
          "a message of %d bytes came where %d were expected", bytes, posted->bytes));
    } else if (bytes > 0) {
      memcpy(posted->to, data, bytes);
    }
  }

  Mutex mutex_;
  std::map<std::tuple<int, int, uint16_t, uint32_t>, Queue> queues_ ABSL_GUARDED_BY(mutex_);
  std::vector<Rank> ranks_;
};

namespace {

class DoneRequest : public TransportRequest {
 public:
  absl::StatusOr<bool> Test() override { return true; }
};

class ReceiveRequest : public TransportRequest {
 public:
  ReceiveRequest(std::shared_ptr<LoopbackMailboxes> mailboxes, std::shared_ptr<Posted> posted)
      : mailboxes_(std::move(mailboxes)), posted_(std::move(posted)) {}
  ~ReceiveRequest() override { mailboxes_->Cancel(posted_); }
  absl::StatusOr<bool> Test() override { return mailboxes_->IsDone(*posted_); }

 private:
  const std::shared_ptr<LoopbackMailboxes> mailboxes_;
  const std::shared_ptr<Posted> posted_;
};

class LoopbackTransport : public Transport {
 public:
  LoopbackTransport(std::shared_ptr<LoopbackMailboxes> mailboxes, int rank)
      : mailboxes_(std::move(mailboxes)), rank_(rank) {}

  absl::StatusOr<std::string> Address() override { return absl::StrFormat("loopback:%d", rank_); }
  absl::Status Connect(const std::vector<std::string>& addresses) override {
    if (static_cast<int>(addresses.size()) == mailboxes_->size()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrFormat("%d addresses for a loopback world of %d",
                                                      addresses.size(), mailboxes_->size()));
  }
  absl::StatusOr<std::unique_ptr<TransportRequest>> Send(int peer, MessageTag tag, const void* data,
                                                         size_t bytes) override {
    if (stopped()) return HasStopped();
    mailboxes_->Send(rank_, peer, tag, data, bytes);
    return std::make_unique<DoneRequest>();
  }
  absl::StatusOr<std::unique_ptr<TransportRequest>> Receive(int peer, MessageTag tag, void* data,
                                                            size_t bytes) override {
    if (stopped()) return HasStopped();
    return std::make_unique<ReceiveRequest>(mailboxes_,
                                            mailboxes_->Receive(peer, rank_, tag, data, bytes));
  }
  absl::StatusOr<std::unique_ptr<TransportRequest>> Settle() override { return nullptr; }
  bool Progress() override {
    if (!stopped()) return mailboxes_->TakeNews(rank_);
    mailboxes_->CancelAll(rank_);
    return false;
  }
  int EventFd() override { return mailboxes_->EventFd(rank_); }
  bool Arm() override { return !mailboxes_->HasNews(rank_); }

 private:
  const std::shared_ptr<LoopbackMailboxes> mailboxes_;
  const int rank_;
};

}  // namespace

LoopbackWorld::LoopbackWorld(int size) : mailboxes_(std::make_shared<LoopbackMailboxes>(size)) {}

std::unique_ptr<Transport> LoopbackWorld::TransportFor(int rank) const {
  return std::make_unique<LoopbackTransport>(mailboxes_, rank);
}

}  // namespace hvd::rt
