// SPDX-License-Identifier: Apache-2.0
// PMI-1 against an mpiexec that is a thread of the test.
#include "runtime/adoption/pmi1_store.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <thread>

#include "base/clock.h"
#include "base/descriptor.h"
#include "runtime/adoption/pmi1_wire.h"
#include "runtime/adoption/value_text.h"

namespace hvd::rt {
namespace {

constexpr auto kLong = std::chrono::seconds(20);

bool Holds(const absl::Status& status, const std::string& words) {
  return std::string(status.message()).find(words) != std::string::npos;
}

// Serves one process. `answer` may answer otherwise; what it leaves empty is answered as hydra
// does.
class Mpiexec {
 public:
  using Values = std::map<std::string, std::string>;
  using Answer = std::function<std::string(const std::string& line)>;

  explicit Mpiexec(Answer answer = nullptr, Values values = {}, int longest_value = 1024)
      : answer_(std::move(answer)), longest_value_(longest_value), values_(std::move(values)) {
    int pair[2] = {-1, -1};
    made_ = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0;
    ours_.Reset(pair[0]);
    theirs_.Reset(pair[1]);
    thread_ = std::thread([this] { Serve(); });
  }
  ~Mpiexec() { Join(); }
  Mpiexec(const Mpiexec&) = delete;
  Mpiexec& operator=(const Mpiexec&) = delete;

  // Ends when the process's last copy is closed.
  void Join() {
    theirs_.Reset();
    if (thread_.joinable()) thread_.join();
  }
  int fd() const { return made_ ? theirs_.get() : -1; }
  bool finalized() const { return finalized_; }
  const Values& values() const { return values_; }  // after Join

 private:
  void Serve() {
    std::string came;
    char buffer[4096];
    while (true) {
      const ssize_t got = recv(ours_.get(), buffer, sizeof(buffer), 0);
      if (got <= 0) return;
      came.append(buffer, static_cast<size_t>(got));
      for (size_t end = came.find('\n'); end != std::string::npos; end = came.find('\n')) {
        const std::string line = came.substr(0, end);
        came.erase(0, end + 1);
        const std::string text = answer_ ? answer_(line) : "";
        if (!Say(text.empty() ? AsHydra(line) + "\n" : text)) return;
      }
    }
  }

  // "hang up" is done instead, after the rest; "nothing" is said as nothing.
  bool Say(std::string text) {
    if (text == "nothing") return true;
    const size_t end = text.find("hang up");
    if (end != std::string::npos) text.resize(end);
    // A byte at a time: no reader may take a piece for a line.
    for (const char byte : text) send(ours_.get(), &byte, 1, MSG_NOSIGNAL);
    if (end != std::string::npos) shutdown(ours_.get(), SHUT_RDWR);
    return end == std::string::npos;
  }

  std::string AsHydra(const std::string& line) {
    const std::string verb(Pmi1Field(line, "cmd"));
    const std::string key(Pmi1Field(line, "key"));
    if (verb == "init") return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0";
    if (verb == "get_maxes") {
      return "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=" + std::to_string(longest_value_);
    }
    if (verb == "get_my_kvsname") return "cmd=my_kvsname kvsname=kvs_1_0";
    if (verb == "barrier_in") return "cmd=barrier_out";
    if (verb == "finalize") {
      finalized_ = true;
      return "cmd=finalize_ack";
    }
    if (Pmi1Field(line, "kvsname") != "kvs_1_0") return "cmd=error rc=-1";
    if (verb == "put") {
      values_[key] = std::string(Pmi1Field(line, "value"));
      const bool fits = values_[key].size() < static_cast<size_t>(longest_value_);
      return fits ? "cmd=put_result rc=0 msg=success" : "cmd=put_result rc=-1 msg=too_long";
    }
    const auto found = values_.find(key);
    if (found == values_.end())
      return "cmd=get_result rc=-1 msg=key_" + key + "_not_found value=unknown";
    return "cmd=get_result rc=0 msg=success value=" + found->second;
  }

  const Answer answer_;
  const int longest_value_;
  Values values_;
  bool made_ = false;
  Descriptor ours_;
  Descriptor theirs_;
  std::atomic<bool> finalized_{false};
  std::thread thread_;
};

// Answers the lines with this verb so, and no others.
Mpiexec::Answer To(const std::string& verb, const std::string& text) {
  return [=](const std::string& line) { return Pmi1Field(line, "cmd") == verb ? text : ""; };
}

// Returns what the Exchange of rank 0 of one comes to.
absl::Status ExchangeWith(Mpiexec* mpiexec, std::chrono::milliseconds patience = kLong) {
  auto store = OpenPmi1Store(mpiexec->fd(), 0, 1);
  return store.ok() ? (*store)->Exchange("value", patience).status() : store.status();
}

TEST_CASE("the processes of mpiexec get what all have given, and take their leave") {
  Mpiexec mpiexec(nullptr, {{"hvd-1", "1:" + ValueText("theirs")}});
  {
    auto store = OpenPmi1Store(mpiexec.fd(), 0, 2);
    REQUIRE(store.ok());
    const auto all = (*store)->Exchange(std::string("mi\0ne =\n", 8), kLong);
    REQUIRE(all.ok());
    CHECK(*all == std::vector<std::string>{std::string("mi\0ne =\n", 8), "theirs"});
    CHECK_FALSE(mpiexec.finalized());
  }
  CHECK(mpiexec.finalized());
}

TEST_CASE("the program's own MPI keeps the descriptor, as it was") {
  Mpiexec mpiexec;
  CHECK(ExchangeWith(&mpiexec).ok());
  CHECK(fcntl(mpiexec.fd(), F_GETFD) == FD_CLOEXEC);  // as the test made it
  CHECK((fcntl(mpiexec.fd(), F_GETFL) & O_NONBLOCK) == 0);
}

TEST_CASE("a value that is longer than mpiexec's longest goes in parts") {
  for (const int longest : {17, 64, 100, 1024}) {
    CAPTURE(longest);
    Mpiexec mpiexec(nullptr, {}, longest);
    auto store = OpenPmi1Store(mpiexec.fd(), 0, 1);
    REQUIRE(store.ok());
    const auto all = (*store)->Exchange(std::string(400, '\xfe'), kLong);
    REQUIRE(all.ok());
    CHECK(all->at(0) == std::string(400, '\xfe'));
    store->reset();
    mpiexec.Join();
    CHECK(mpiexec.values().size() == (800u + longest - 5) / (std::min(longest - 1, 800) - 3));
  }
}

TEST_CASE("an empty value is one") {
  Mpiexec mpiexec;
  auto store = OpenPmi1Store(mpiexec.fd(), 0, 1);
  REQUIRE(store.ok());
  CHECK((*store)->Exchange("", kLong)->at(0).empty());
}

TEST_CASE("mpiexec that refuses a second init serves all the same") {
  Mpiexec mpiexec(To("init", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n"));
  CHECK(ExchangeWith(&mpiexec).ok());
}

TEST_CASE("a refusal is told in mpiexec's words, without the value") {
  Mpiexec mpiexec(To("put", "cmd=put_result rc=-1 msg=duplicate_key\n"));
  const absl::Status refused = ExchangeWith(&mpiexec);
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK(Holds(refused, "refuses put kvsname=kvs_1_0 key=hvd-0: "));
  CHECK(Holds(refused, "duplicate_key"));
  CHECK_FALSE(Holds(refused, ValueText("value")));
}

TEST_CASE("a rank that has given nothing is named") {
  Mpiexec mpiexec;
  auto store = OpenPmi1Store(mpiexec.fd(), 0, 2);
  REQUIRE(store.ok());
  CHECK(Holds((*store)->Exchange("value", kLong).status(), "key=hvd-1"));
}

TEST_CASE("mpiexec's end is told, wherever it comes") {
  for (const char* verb : {"init", "get_maxes", "put", "barrier_in", "get"}) {
    for (const char* text : {"hang up", "cmd=barrier_ohang up"}) {
      CAPTURE(verb, text);
      Mpiexec mpiexec(To(verb, text));
      const absl::Status gone = ExchangeWith(&mpiexec);
      CHECK(absl::IsUnavailable(gone));
      CHECK(Holds(gone, verb));
      CHECK(Holds(gone, "hung up"));
    }
  }
}

TEST_CASE("what is not PMI-1 is shown, and steers no terminal") {
  Mpiexec mpiexec(To("init", "HTTP/1.1 400 \x1b[2J\n"));
  const absl::Status garbage = ExchangeWith(&mpiexec);
  CHECK(absl::IsUnavailable(garbage));
  CHECK(Holds(garbage, "HTTP/1.1 400 \\x1b[2J"));
}

TEST_CASE("values that are no rank's are refused") {
  for (const char* value :
       {"", "unknown", "1:", "1:0", "1:zz", "0:00", "100:00", "-1:00", "x:00"}) {
    CAPTURE(value);
    Mpiexec mpiexec(To("get", std::string("cmd=get_result rc=0 value=") + value + "\n"));
    const absl::Status done = ExchangeWith(&mpiexec);
    CHECK(done.ok() == (std::string(value) == "1:"));
    if (!done.ok()) CHECK(Holds(done, "rank 0"));
  }
}

TEST_CASE("limits that leave no room for a value are refused") {
  for (const char* limits : {"", "vallen_max=", "vallen_max=16", "vallen_max=-1", "vallen_max=x"}) {
    CAPTURE(limits);
    Mpiexec mpiexec(To("get_maxes", std::string("cmd=maxes ") + limits + "\n"));
    CHECK(Holds(ExchangeWith(&mpiexec), "keeps no values"));
  }
}

TEST_CASE("a line that does not end is given up") {
  Mpiexec mpiexec(To("init", std::string(80000, 'x')));
  CHECK(Holds(ExchangeWith(&mpiexec), "does not end"));
}

TEST_CASE("processes that do not come are waited for no longer than told") {
  Mpiexec mpiexec(To("barrier_in", "nothing"));
  const TimePoint began = Clock::now();
  const absl::Status late = ExchangeWith(&mpiexec, std::chrono::milliseconds(50));
  CHECK(absl::IsDeadlineExceeded(late));
  CHECK(Holds(late, "0.05 s"));
  CHECK(Clock::now() - began >= std::chrono::milliseconds(50));
  CHECK(mpiexec.finalized());
}

TEST_CASE("a barrier's late answer does not keep the process from its leave") {
  Mpiexec mpiexec([](const std::string& line) {
    if (Pmi1Field(line, "cmd") == "barrier_in") return std::string("nothing");
    return std::string(Pmi1Field(line, "cmd") == "finalize" ? "cmd=barrier_out\ncmd=finalize_ack\n"
                                                            : "");
  });
  const TimePoint began = Clock::now();
  CHECK(absl::IsDeadlineExceeded(ExchangeWith(&mpiexec, std::chrono::milliseconds(10))));
  CHECK(Clock::now() - began < std::chrono::seconds(2));  // the farewell's patience
}

TEST_CASE("a descriptor that is closed is named by its variable") {
  const auto store = OpenPmi1Store(987654, 0, 1);
  CHECK(absl::IsFailedPrecondition(store.status()));
  CHECK(Holds(store.status(), "PMI_FD=987654"));
}

TEST_CASE("fields are found by their whole names") {
  CHECK(Pmi1Field("cmd=get_result rc=0  value=a=b", "value") == "a=b");
  CHECK(Pmi1Field("cmd=x kvsname_max=3", "kvsname").empty());
  CHECK(Pmi1Field("cmd", "cmd").empty());
  CHECK(Pmi1Field("", "cmd").empty());
}

}  // namespace
}  // namespace hvd::rt
