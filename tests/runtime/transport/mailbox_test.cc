// SPDX-License-Identifier: Apache-2.0
// Two mailboxes and a wire between them that delivers when the test says so.
#include "runtime/transport/tcp/mailbox.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

namespace hvd::rt {
namespace {

using Bytes = std::vector<std::byte>;

struct Side : public Outbox {
  explicit Side(const MailboxLimits& limits) : mailbox(limits, this) {}
  // A frame that is put in is on the wire at once, as if the system took everything.
  void Put(const Frame& frame, const std::shared_ptr<Outbound>& message) override {
    Bytes payload;
    if (message != nullptr) {
      payload.assign(message->data + frame.offset, message->data + frame.offset + frame.bytes);
      message->written += frame.bytes;
      if (message->written == message->bytes) message->outcome.Done();
    }
    wire.push_back({frame, std::move(payload)});
  }
  struct Sent {
    Frame frame;
    Bytes payload;
  };
  Mailbox mailbox;
  std::deque<Sent> wire;
};

absl::Status Deliver(Side* from, Side* to) {
  const Side::Sent sent = std::move(from->wire.front());
  from->wire.pop_front();
  const absl::StatusOr<Landing> landing = to->mailbox.Take(sent.frame);
  if (!landing.ok()) return landing.status();
  if (landing->to == nullptr) return absl::OkStatus();
  if (landing->to->data != nullptr && !sent.payload.empty()) {
    memcpy(landing->to->data + landing->offset, sent.payload.data(), sent.payload.size());
  }
  to->mailbox.Landed(*landing);
  return absl::OkStatus();
}

void DeliverAll(Side* a, Side* b) {
  while (!a->wire.empty() || !b->wire.empty()) {
    if (!a->wire.empty()) REQUIRE(Deliver(a, b).ok());
    if (!b->wire.empty()) REQUIRE(Deliver(b, a).ok());
  }
}

std::shared_ptr<Inbound> Waiting(MessageTag tag, Bytes* data) {
  auto inbound = std::make_shared<Inbound>();
  inbound->tag = tag;
  inbound->data = data->data();
  inbound->bytes = data->size();
  return inbound;
}

std::shared_ptr<Outbound> Sending(MessageTag tag, const Bytes& data) {
  auto outbound = std::make_shared<Outbound>();
  outbound->tag = tag;
  outbound->data = data.data();
  outbound->bytes = data.size();
  return outbound;
}

bool IsDone(const Outcome& outcome) {
  const absl::StatusOr<bool> done = outcome.Test();
  return done.ok() && *done;
}

constexpr MailboxLimits kTight{100, 1000, 50};

// The order in which a rank waits for its messages, and who begins, are drawn; so is what the wire
// does when. Credit for a few messages only.
TEST_CASE(
    "whatever the order of sends, receives and deliveries, all messages come where they belong") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937 draw(seed);
    Side a(kTight), b(kTight);
    constexpr int kMessages = 60;
    std::vector<Bytes> data(kMessages), room(kMessages);
    std::vector<MessageTag> tags(kMessages);
    for (int i = 0; i < kMessages; ++i) {
      const size_t sizes[] = {0, 1, 99, 100, 101, 5000};
      data[i] = Bytes(sizes[draw() % 6], std::byte(i));
      room[i] = Bytes(data[i].size());
      tags[i] = {1, static_cast<uint32_t>(draw() % 4)};
    }
    std::vector<std::shared_ptr<Outbound>> sends;
    std::vector<std::shared_ptr<Inbound>> receives(kMessages);
    // By tag, in any order of tags.
    std::vector<int> order(kMessages);
    for (int i = 0; i < kMessages; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), draw);
    std::stable_sort(order.begin(), order.end(),
                     [&](int x, int y) { return tags[x].step % 2 < tags[y].step % 2; });
    std::map<uint32_t, std::vector<int>> in_tag;
    for (int i = 0; i < kMessages; ++i) in_tag[tags[i].step].push_back(i);
    std::map<uint32_t, size_t> posted;
    size_t next_receive = 0;
    while (sends.size() < kMessages || next_receive < kMessages || !a.wire.empty() ||
           !b.wire.empty()) {
      const unsigned what = draw() % 4;
      if (what == 0 && sends.size() < kMessages) {
        sends.push_back(Sending(tags[sends.size()], data[sends.size()]));
        a.mailbox.Give(sends.back());
      } else if (what == 1 && next_receive < kMessages) {
        const uint32_t step = tags[order[next_receive++]].step;
        const int i = in_tag[step][posted[step]++];
        receives[i] = Waiting(tags[i], &room[i]);
        b.mailbox.Post(receives[i]);
      } else if (what == 2 && !a.wire.empty()) {
        REQUIRE(Deliver(&a, &b).ok());
      } else if (what == 3 && !b.wire.empty()) {
        REQUIRE(Deliver(&b, &a).ok());
      }
    }
    for (int i = 0; i < kMessages; ++i) {
      REQUIRE(IsDone(sends[i]->outcome));
      REQUIRE(IsDone(receives[i]->outcome));
      REQUIRE(room[i] == data[i]);
    }
  }
}

TEST_CASE("what nobody waits for takes no more than the credit: the rest stays with its sender") {
  Side a(kTight), b(kTight);
  const Bytes data(100, std::byte(7));
  std::vector<std::shared_ptr<Outbound>> sends;
  for (int i = 0; i < 40; ++i) {
    sends.push_back(Sending({1, 1}, data));
    a.mailbox.Give(sends.back());
  }
  size_t on_the_wire = 0;
  for (const Side::Sent& sent : a.wire) on_the_wire += sent.payload.size();
  CHECK(on_the_wire <= kTight.credit_bytes);
  CHECK_FALSE(IsDone(sends.back()->outcome));
  DeliverAll(&a, &b);
  std::vector<Bytes> rooms(40, Bytes(100));
  for (Bytes& room : rooms) b.mailbox.Post(Waiting({1, 1}, &room));
  DeliverAll(&a, &b);
  for (const auto& send : sends) CHECK(IsDone(send->outcome));
  for (const Bytes& room : rooms) CHECK(room == data);
}

TEST_CASE("a large message is sent only when it is waited for, straight to its place") {
  Side a(kTight), b(kTight);
  const Bytes data(5000, std::byte(9));
  Bytes room(5000);
  a.mailbox.Give(Sending({1, 1}, data));
  CHECK(a.wire.empty());
  const auto receive = Waiting({1, 1}, &room);
  b.mailbox.Post(receive);
  DeliverAll(&a, &b);
  CHECK(IsDone(receive->outcome));
  CHECK(room == data);
}

TEST_CASE("a receive that is withdrawn leaves its message to the next of its tag") {
  for (const size_t bytes : {50, 5000}) {
    Side a(kTight), b(kTight);
    const Bytes data(bytes, std::byte(9));
    Bytes dropped(bytes), kept(bytes);
    const auto first = Waiting({1, 1}, &dropped);
    b.mailbox.Post(first);
    b.mailbox.Withdraw(first);
    const auto second = Waiting({1, 1}, &kept);
    b.mailbox.Post(second);
    a.mailbox.Give(Sending({1, 1}, data));
    DeliverAll(&a, &b);
    CHECK(IsDone(second->outcome));
    CHECK(kept == data);
    CHECK(dropped == Bytes(bytes));
  }
}

// A peer that knows the secret and breaks the rules is answered by an error, not by memory.
TEST_CASE("a peer that breaks the rules is refused") {
  const auto refused = [](const std::vector<Frame>& frames) {
    Side b(kTight);
    Bytes room(5000);
    b.mailbox.Post(Waiting({1, 1}, &room));  // is granted as 1
    for (const Frame& frame : frames) {
      const absl::StatusOr<Landing> landing = b.mailbox.Take(frame);
      if (!landing.ok()) return std::string(landing.status().message());
      if (landing->to != nullptr) b.mailbox.Landed(*landing);
    }
    return std::string();
  };
  const auto frame = [](FrameKind kind, uint64_t bytes, uint64_t id = 0, uint64_t offset = 0) {
    return Frame{kind, 9, 9, bytes, id, offset};
  };
  using Kind = FrameKind;
  CHECK(refused({frame(Kind::kSmall, 100)}) == "");
  CHECK(refused({frame(Kind::kChunk, 5000, 1)}) == "");
  for (const std::vector<Frame>& wrong : std::vector<std::vector<Frame>>{
           {frame(Kind::kSmall, 101)},
           {frame(Kind::kSmall, ~uint64_t{0})},
           {frame(Kind::kChunk, 10, 2)},
           {frame(Kind::kChunk, 5001, 1)},
           {frame(Kind::kChunk, 1, 1, 5000)},
           {frame(Kind::kChunk, ~uint64_t{0}, 1, 1)},
           {frame(Kind::kChunk, 1, 1, ~uint64_t{0})},
           {frame(Kind::kChunk, 0, 1)},
           {frame(Kind::kChunk, 5000, 1), frame(Kind::kChunk, 1, 1)},
           {frame(Kind::kCredit, 1)},
           {frame(Kind::kAnnounce, 101, 7)},
           {frame(Kind::kAnnounce, 10, 0)},
           {Frame{static_cast<Kind>(77), 0, 0, 0, 0, 0}},
           std::vector<Frame>(51, frame(Kind::kAnnounce, 10, 7)),
           std::vector<Frame>(51, frame(Kind::kGrant, 5000, 7)),
           std::vector<Frame>(32, frame(Kind::kSmall, 0)),
       }) {
    INFO("kind " << static_cast<int>(wrong[0].kind) << ", " << wrong[0].bytes << " bytes");
    CHECK(refused(wrong).find("breaks the rules") != std::string::npos);
  }
}

TEST_CASE("when a peer is lost, all that is pending says so") {
  Side a(kTight), b(kTight);
  const Bytes small(50), large(5000);
  Bytes room(50), large_room(5000);
  std::vector<std::shared_ptr<Outbound>> sends;
  for (int i = 0; i < 20; ++i) sends.push_back(Sending({1, 2}, small));
  sends.push_back(Sending({1, 3}, large));
  for (const auto& send : sends) a.mailbox.Give(send);
  const auto receive = Waiting({2, 1}, &room), granted = Waiting({2, 2}, &large_room);
  a.mailbox.Post(receive);
  a.mailbox.Post(granted);
  a.mailbox.Fail(absl::UnavailableError("gone"));
  CHECK(receive->outcome.Test().status().message() == "gone");
  CHECK(granted->outcome.Test().status().message() == "gone");
  CHECK(sends[19]->outcome.Test().status().message() == "gone");  // announced
  CHECK(sends[20]->outcome.Test().status().message() == "gone");
}

}  // namespace
}  // namespace hvd::rt
