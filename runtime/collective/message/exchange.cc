// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/message/exchange.h"

#include <algorithm>
#include <utility>

namespace hvd::rt {
namespace {

// Receives come from the left while sends go to the right, both by distance: in the ith exchange
// every rank hears from one and talks to one.
class ExchangeRun : public MessageRun {
 public:
  ExchangeRun(MessageGroup* group, std::vector<ExchangePart> parts)
      : group_(group), step_(group->step()), parts_(std::move(parts)) {
    const auto distance = [group](int from, int to) {
      return (to - from + group->size()) % group->size();
    };
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].send_bytes > 0) sends_.order.push_back(i);
      if (parts_[i].receive_bytes > 0) receives_.order.push_back(i);
    }
    const int me = group->rank();
    std::sort(sends_.order.begin(), sends_.order.end(), [&](size_t a, size_t b) {
      return distance(me, parts_[a].peer) < distance(me, parts_[b].peer);
    });
    std::sort(receives_.order.begin(), receives_.order.end(), [&](size_t a, size_t b) {
      return distance(parts_[a].peer, me) < distance(parts_[b].peer, me);
    });
  }

 protected:
  absl::StatusOr<bool> Advance() override {
    bool moved = false;
    const absl::StatusOr<bool> received =
        Move(&receives_, [&](const ExchangePart& part, MessageGroup::Request* request) {
          return group_->Receive({part.peer, step_}, part.receive, part.receive_bytes, request);
        });
    if (!received.ok()) return received;
    moved |= *received;
    const absl::StatusOr<bool> sent =
        Move(&sends_, [&](const ExchangePart& part, MessageGroup::Request* request) {
          return group_->Send({part.peer, step_}, part.send, part.send_bytes, request);
        });
    if (!sent.ok()) return sent;
    return moved || *sent;
  }
  bool IsComplete() const override { return receives_.complete() && sends_.complete(); }

 private:
  static constexpr size_t kWindow = 4;
  struct Direction {
    std::vector<size_t> order;  // indices into parts_
    size_t begun = 0;
    size_t done = 0;
    MessageGroup::Request window[kWindow];
    bool complete() const { return done == order.size(); }
  };

  template <class Begin>
  absl::StatusOr<bool> Move(Direction* direction, const Begin& begin) {
    bool moved = false;
    while (direction->done < direction->begun) {
      const auto done = group_->TakeIfDone(&direction->window[direction->done % kWindow]);
      if (!done.ok()) return done;
      if (!*done) break;
      ++direction->done;
      moved = true;
    }
    while (direction->begun < direction->order.size() &&
           direction->begun < direction->done + kWindow) {
      const size_t index = direction->begun++;
      absl::Status ok = begin(parts_[direction->order[index]], &direction->window[index % kWindow]);
      if (!ok.ok()) return ok;
      moved = true;
    }
    return moved;
  }

  MessageGroup* const group_;
  const uint32_t step_;
  const std::vector<ExchangePart> parts_;
  Direction sends_, receives_;
};

}  // namespace

std::unique_ptr<MessageRun> Exchange(MessageGroup* group, std::vector<ExchangePart> parts) {
  return std::make_unique<ExchangeRun>(group, std::move(parts));
}

}  // namespace hvd::rt
