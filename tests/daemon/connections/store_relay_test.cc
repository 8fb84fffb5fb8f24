// SPDX-License-Identifier: Apache-2.0
#include "daemon/connections/store_relay.h"

#include <poll.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>

#include "daemon/connections/frames.h"
#include "tests/support/patience.h"

namespace hvd::daemon {
namespace {

using Catch::Matchers::Contains;

// A rank's end of a connection that the relay has adopted.
class Caller {
 public:
  explicit Caller(StoreRelay* relay, const std::string& rest = "") {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    socket_.Reset(ends[0]);
    relay->Adopt(0, Descriptor(ends[1]), rest);
  }
  void Ask(StoreVerb verb, const std::string& key = "k") { Send(Frame(Bytes(verb, key))); }
  void Send(const std::string& bytes) const {
    REQUIRE(send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
  }
  static std::string Bytes(StoreVerb verb, const std::string& key) {
    StoreRequest request;
    request.verb = verb;
    request.keys = {key};
    return EncodeStoreRequest(request).Whole();
  }
  // The next frame; "": the relay has closed the connection, or nothing comes.
  std::string Receive() {
    std::string message;
    while (!cutter_.Next(&message)) {
      pollfd ready{socket_.get(), POLLIN, 0};
      if (poll(&ready, 1, PatientMs(5000)) != 1) return "";
      char buffer[4096];
      const ssize_t n = recv(socket_.get(), buffer, sizeof(buffer), 0);
      if (n <= 0) return "";
      cutter_.Take({buffer, static_cast<size_t>(n)});
    }
    return message;
  }
  StoreAnswer Answer() {
    StoreAnswer answer;
    REQUIRE(DecodeStoreAnswer(Receive(), &answer));
    return answer;
  }
  void Leave() { socket_.Reset(); }

 private:
  Descriptor socket_;
  FrameCutter cutter_{kMostStoreMessage};
};

// Hears what the relay tells, as the driver does. It outlives the relay.
class Driver {
 public:
  void Hear(const v1::StoreChunk& chunk) {
    const std::lock_guard lock(mutex_);
    receiver_.Take(chunk.data());
    uint64_t call = 0;
    std::string_view message;
    while (receiver_.Next(&call, &message)) parcels_.emplace_back(call, message);
    changed_.notify_all();
  }
  // The n-th parcel that has come, from 0.
  std::pair<uint64_t, std::string> Await(size_t n) {
    std::unique_lock lock(mutex_);
    const std::chrono::duration<double> patience(Patient(5));
    REQUIRE(changed_.wait_for(lock, patience, [&] { return parcels_.size() > n; }));
    return parcels_[n];
  }
  v1::StoreChunk AnswerTo(uint64_t call, const std::string& message) {
    StoreParcel parcel;
    parcel.call = call;
    parcel.message.head = message;
    sender_.Put(parcel);
    v1::StoreChunk chunk;
    chunk.set_data(sender_.Take({}));
    const std::lock_guard lock(mutex_);
    chunk.set_taken(receiver_.taken());
    return chunk;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  ParcelReceiver receiver_;                                // guarded by mutex_
  std::vector<std::pair<uint64_t, std::string>> parcels_;  // guarded by mutex_
  ParcelSender sender_;
};

struct Relayed {
  Driver driver;
  StoreRelay relay;
  Relayed() {
    relay.Connect([this](const v1::StoreChunk& chunk) { driver.Hear(chunk); });
  }
};

TEST_CASE("a call goes up as it came, and its answer to who has asked") {
  Relayed job;
  Caller one(&job.relay);
  Caller two(&job.relay, Frame(Caller::Bytes(StoreVerb::kSet, "came with the claim")));
  const auto first = job.driver.Await(0);
  CHECK(first.second == Caller::Bytes(StoreVerb::kSet, "came with the claim"));
  one.Ask(StoreVerb::kGet);
  const auto second = job.driver.Await(1);
  CHECK(second.second == Caller::Bytes(StoreVerb::kGet, "k"));
  CHECK(second.first != first.first);
  job.relay.Receive(job.driver.AnswerTo(second.first, "for one"));
  job.relay.Receive(job.driver.AnswerTo(first.first, "for two"));
  CHECK(one.Receive() == "for one");
  CHECK(two.Receive() == "for two");
  one.Ask(StoreVerb::kCount);
  CHECK(job.driver.Await(2).first > second.first);
}

TEST_CASE("a caller that is gone is told of, and not answered") {
  Relayed job;
  Caller caller(&job.relay);
  caller.Ask(StoreVerb::kGet);
  const uint64_t call = job.driver.Await(0).first;
  caller.Leave();
  CHECK(job.driver.Await(1) == std::pair<uint64_t, std::string>(call, ""));
  job.relay.Receive(job.driver.AnswerTo(call, "too late"));
  Caller next(&job.relay);
  next.Ask(StoreVerb::kGet);
  CHECK(job.driver.Await(2).first != call);
}

TEST_CASE("a broken epoch ends what waits, and nothing else") {
  Relayed job;
  Caller gets(&job.relay), waits(&job.relay), sets(&job.relay);
  gets.Ask(StoreVerb::kGet);
  waits.Ask(StoreVerb::kWait);
  sets.Ask(StoreVerb::kSet);
  for (size_t i = 0; i < 3; ++i) job.driver.Await(i);
  job.relay.EndWaits("rank 7 died");
  for (Caller* each : {&gets, &waits}) {
    const StoreAnswer answer = each->Answer();
    CHECK(answer.outcome == StoreOutcome::kAborted);
    CHECK(answer.text == "rank 7 died");
  }
  CHECK(job.driver.Await(3).second.empty());
  CHECK(job.driver.Await(4).second.empty());
  job.relay.Stop("the end");
  CHECK(sets.Answer().text == "the end");
}

TEST_CASE("after a stop every call is answered with its cause") {
  Relayed job;
  job.relay.Stop("rank 7 died");
  job.relay.Stop("and later others");
  Caller caller(&job.relay);
  for (int again = 0; again < 2; ++again) {
    caller.Ask(StoreVerb::kSet);
    CHECK(caller.Answer().text == "rank 7 died");
  }
}

TEST_CASE("who asks again before the answer, or says nonsense, loses the connection") {
  Relayed job;
  Caller hasty(&job.relay);
  hasty.Ask(StoreVerb::kGet);
  job.driver.Await(0);
  hasty.Ask(StoreVerb::kGet);
  CHECK(hasty.Receive().empty());
  Caller rude(&job.relay);
  rude.Send("\xff\xff\xff\xff");
  CHECK(rude.Receive().empty());
}

TEST_CASE("a rank has a limit of connections, which is told") {
  Relayed job;
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < kMostStoreCalls; ++i) callers.push_back(std::make_unique<Caller>(&job.relay));
  Caller one_more(&job.relay);
  const StoreAnswer answer = one_more.Answer();
  CHECK(answer.outcome == StoreOutcome::kFull);
  CHECK_THAT(answer.text, Contains("256 calls under way"));
  CHECK(one_more.Receive().empty());
  callers.front()->Ask(StoreVerb::kSet);
  CHECK(job.driver.Await(0).second == Caller::Bytes(StoreVerb::kSet, "k"));
  // A rank that gives up a connection has room for another at once.
  for (size_t next = 1; next <= 20; ++next) {
    callers[next].reset();
    callers.push_back(std::make_unique<Caller>(&job.relay));
    callers.back()->Ask(StoreVerb::kSet);
    REQUIRE(job.driver.Await(next).second == Caller::Bytes(StoreVerb::kSet, "k"));
  }
}

}  // namespace
}  // namespace hvd::daemon
