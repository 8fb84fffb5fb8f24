// SPDX-License-Identifier: Apache-2.0
// torch's TCPStore against a server that is a thread of the test.
#include "runtime/adoption/torch_store.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <thread>

#include "base/clock.h"
#include "base/descriptor.h"

namespace hvd::rt {
namespace {

constexpr auto kLong = std::chrono::seconds(20);

bool Holds(const absl::Status& status, const std::string& words) {
  return std::string(status.message()).find(words) != std::string::npos;
}

enum class Fault { kNone, kHangUpAtOnce, kHangUpInValue, kStrangeAnswer, kHugeValue, kNoCancel };

// Serves one client, as torch does.
class Server {
 public:
  using Values = std::map<std::string, std::string>;

  explicit Server(Fault fault = Fault::kNone, Values values = {}, bool listens = true)
      : fault_(fault), values_(std::move(values)) {
    listener_.Reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    auto* const address = reinterpret_cast<sockaddr*>(&address_);
    if (bind(listener_.get(), address, size) != 0) return;
    getsockname(listener_.get(), address, &size);
    if (listens) Begin();
  }
  ~Server() {
    shutdown(listener_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void Begin() {
    listen(listener_.get(), 8);
    thread_ = std::thread([this] { Serve(); });
  }
  TorchStorePlace Place(int rank, int size) const {
    return {"127.0.0.1", ntohs(address_.sin_port), "hvd/0/", rank, size, false};
  }

 private:
  void Serve() {
    client_.Reset(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client_.valid() || fault_ == Fault::kHangUpAtOnce) return client_.Reset();
    char greeting[5];
    const uint32_t magic = 0x3C85F7CE;
    if (!Take(greeting, 5) || greeting[0] != 0) return client_.Reset();
    if (std::memcmp(greeting + 1, &magic, 4) != 0) return client_.Reset();
    char question = 0;
    while (Take(&question, 1) && Answer(question)) {
    }
    client_.Reset();
  }

  bool Answer(char question) {
    if (question == 1) {  // SET
      const std::string key = TakeText();
      values_[key] = TakeText();
      return true;
    }
    if (question == 3) return SayValue(values_[TakeText()]);              // GET
    if (question == 12) return fault_ != Fault::kNoCancel && SayByte(1);  // CANCEL_WAIT
    if (question != 5 && question != 6) return false;                     // neither CHECK nor WAIT
    bool all = true;
    const uint64_t count = TakeNumber();
    for (uint64_t i = 0; i < count; ++i) all = values_.count(TakeText()) == 1 && all;
    if (question == 5) return SayByte(all ? 0 : 1);
    if (fault_ == Fault::kStrangeAnswer) return SayByte(72);
    return !all || SayByte(0);
  }

  bool SayValue(const std::string& value) {
    const uint64_t size = fault_ == Fault::kHugeValue ? uint64_t{1} << 60 : value.size();
    std::string text(reinterpret_cast<const char*>(&size), sizeof(size));
    text += value;
    if (fault_ == Fault::kHangUpInValue) text.pop_back();
    // A byte at a time: no reader may take a piece for all.
    for (const char byte : text) SayByte(static_cast<unsigned char>(byte));
    return fault_ != Fault::kHangUpInValue;
  }
  bool SayByte(unsigned char byte) { return send(client_.get(), &byte, 1, MSG_NOSIGNAL) == 1; }

  bool Take(void* to, size_t bytes) {
    return bytes == 0 || recv(client_.get(), to, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
  }
  uint64_t TakeNumber() {
    uint64_t number = 0;
    return Take(&number, sizeof(number)) ? number : 0;
  }
  std::string TakeText() {
    std::string text(TakeNumber(), '\0');
    Take(text.data(), text.size());
    return text;
  }

  const Fault fault_;
  Values values_;
  sockaddr_in address_{};
  Descriptor listener_;
  Descriptor client_;
  std::thread thread_;
};

absl::StatusOr<std::vector<std::string>> ExchangeAt(const TorchStorePlace& place,
                                                    std::chrono::milliseconds patience = kLong) {
  auto store = OpenTorchStore(place);
  if (!store.ok()) return store.status();
  return (*store)->Exchange(std::string("mi\0ne", 5), patience);
}

TEST_CASE("torchrun's processes get what all have given, under torch's keys") {
  Server server(Fault::kNone, {{"/hvd/0/0", "first"}, {"/hvd/0/2", ""}});
  const auto all = ExchangeAt(server.Place(1, 3));
  REQUIRE(all.ok());
  CHECK(*all == std::vector<std::string>{"first", std::string("mi\0ne", 5), ""});
}

TEST_CASE("many processes are asked for in several goes") {
  Server::Values values;
  std::vector<std::string> given;
  for (int rank = 0; rank < 100; ++rank) {
    given.push_back(std::string(400, static_cast<char>('0' + rank)));
    values["/hvd/0/" + std::to_string(rank)] = given.back();
  }
  Server server(Fault::kNone, values);
  given[70] = std::string("mi\0ne", 5);
  const auto all = ExchangeAt(server.Place(70, 100));
  REQUIRE(all.ok());
  CHECK(*all == given);
}

TEST_CASE("a server that begins later is waited for") {
  Server server(Fault::kNone, {}, false);
  std::thread later([&] {
    poll(nullptr, 0, 100);
    server.Begin();
  });
  const auto all = ExchangeAt(server.Place(0, 1));
  later.join();
  CHECK(all.ok());
}

TEST_CASE("a server that never begins is named by its variables") {
  const Server server(Fault::kNone, {}, false);
  const TorchStorePlace place = server.Place(0, 1);
  const auto all = ExchangeAt(place, std::chrono::milliseconds(60));
  CHECK(absl::IsUnavailable(all.status()));
  CHECK(Holds(all.status(), "MASTER_ADDR=127.0.0.1, MASTER_PORT=" + std::to_string(place.port)));
  CHECK(Holds(all.status(), "Connection refused"));
}

TEST_CASE("processes that do not come are waited for no longer than told, and one is named") {
  Server server(Fault::kNone, {{"/hvd/0/0", "first"}});
  const auto all = ExchangeAt(server.Place(1, 4), std::chrono::milliseconds(50));
  CHECK(absl::IsDeadlineExceeded(all.status()));
  CHECK(Holds(all.status(),
              "not all of torchrun's 4 processes have come in 0.05 s (rank 2 has not)"));
}

TEST_CASE("a server that does not say who is missing is no other error") {
  Server server(Fault::kNoCancel);
  const auto all = ExchangeAt(server.Place(0, 2), std::chrono::milliseconds(50));
  CHECK(absl::IsDeadlineExceeded(all.status()));
  CHECK_FALSE(Holds(all.status(), "has not)"));
}

TEST_CASE("a server that hangs up is said to") {
  for (const Fault fault : {Fault::kHangUpAtOnce, Fault::kHangUpInValue}) {
    Server server(fault);
    const auto all = ExchangeAt(server.Place(0, 1));
    CHECK(absl::IsUnavailable(all.status()));
    CHECK(Holds(all.status(), "torchrun's store"));
  }
}

TEST_CASE("answers that are not torch's are refused") {
  Server strange(Fault::kStrangeAnswer);
  CHECK(Holds(ExchangeAt(strange.Place(0, 1)).status(), "it answers WAIT with 72"));
  Server huge(Fault::kHugeValue);
  CHECK(Holds(ExchangeAt(huge.Place(0, 1)).status(), "a value of 1152921504606846976 bytes"));
}

TEST_CASE("a process that would have to serve the store is told what to do instead") {
  TorchStorePlace place{"host", 1, "hvd/0/", 0, 2, true};
  const auto store = OpenTorchStore(place);
  CHECK(absl::IsUnimplemented(store.status()));
  CHECK(Holds(store.status(), "MASTER_ADDR=host, MASTER_PORT=1"));
  CHECK(Holds(store.status(), "torchrun"));
}

TEST_CASE("a rank that the job does not have is refused") {
  for (const int rank : {-1, 2}) {
    TorchStorePlace place{"host", 1, "hvd/0/", rank, 2, false};
    CHECK(absl::IsFailedPrecondition(OpenTorchStore(place).status()));
  }
}

}  // namespace
}  // namespace hvd::rt
