// SPDX-License-Identifier: Apache-2.0
#include "runtime/adoption/torch_client.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/adoption/store_socket.h"

namespace hvd::rt {
namespace {

enum Question : char { kValidate = 0, kSet = 1, kGet = 3, kCheck = 5, kWait = 6, kCancelWait = 12 };
enum WaitAnswer : unsigned char { kStopWaiting = 0, kWaitCancelled = 1 };
enum CheckAnswer : unsigned char { kReady = 0, kNotReady = 1 };

constexpr uint32_t kMagic = 0x3C85F7CE;  // the first thing that a client says
constexpr size_t kLongestValue = 1 << 20;
constexpr size_t kGetsAtOnce = 32;  // questions and answers fit into the sockets' buffers
constexpr auto kConnectPatience = std::chrono::seconds(3);  // an address
constexpr auto kShortestPause = std::chrono::milliseconds(20);
constexpr auto kLongestPause = std::chrono::milliseconds(500);

struct FreeAddresses {
  void operator()(addrinfo* found) const { freeaddrinfo(found); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

template <class Number>
void AppendNumber(Number number, std::string* to) {
  to->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void AppendText(absl::string_view text, std::string* to) {
  AppendNumber(static_cast<uint64_t>(text.size()), to);
  to->append(text.data(), text.size());
}

std::string AskOf(Question question, const std::vector<std::string>& keys) {
  std::string text(1, question);
  AppendNumber(static_cast<uint64_t>(keys.size()), &text);
  for (const std::string& key : keys) AppendText(key, &text);
  return text;
}

absl::Status Foreign(absl::string_view question, unsigned char answer) {
  return absl::UnavailableError(
      absl::StrCat("it answers ", question, " with ", answer, ", which no TCPStore does"));
}

// Names are the resolver's to find, which has its own patience. Nothing: not at the moment.
absl::StatusOr<Addresses> Resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int result = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (result == 0) return Addresses(found);
  if (result == EAI_AGAIN) return absl::UnavailableError(gai_strerror(result));
  return absl::InvalidArgumentError(gai_strerror(result));
}

absl::StatusOr<Descriptor> ConnectTo(const addrinfo& address, TimePoint until) {
  constexpr int kType = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  Descriptor socket(::socket(address.ai_family, kType, IPPROTO_TCP));
  if (!socket.valid()) return absl::UnavailableError(strerrordesc_np(errno));
  int error = connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    const TimePoint enough = std::min(until, Clock::now() + kConnectPatience);
    if (!AwaitSocket(socket.get(), POLLOUT, enough).ok()) {
      return absl::UnavailableError("it does not answer");
    }
    socklen_t size = sizeof(error);
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error != 0) return absl::UnavailableError(strerrordesc_np(error));
  return socket;
}

// The first address at which somebody listens.
absl::StatusOr<Descriptor> ConnectOnce(const std::string& host, int port, TimePoint until) {
  const absl::StatusOr<Addresses> found = Resolve(host, port);
  if (!found.ok()) return found.status();
  absl::Status last = absl::UnavailableError("it has no address");
  for (const addrinfo* address = found->get(); address != nullptr; address = address->ai_next) {
    absl::StatusOr<Descriptor> socket = ConnectTo(*address, until);
    if (socket.ok()) return socket;
    last = socket.status();
  }
  return last;
}

}  // namespace

absl::StatusOr<TorchClient> TorchClient::Connect(const std::string& host, int port,
                                                 TimePoint until) {
  std::chrono::milliseconds pause = kShortestPause;
  absl::StatusOr<Descriptor> socket = ConnectOnce(host, port, until);
  while (absl::IsUnavailable(socket.status()) && Clock::now() + pause < until) {
    poll(nullptr, 0, static_cast<int>(pause.count()));
    pause = std::min<std::chrono::milliseconds>(pause * 2, kLongestPause);
    socket = ConnectOnce(host, port, until);
  }
  if (!socket.ok()) return socket.status();
  std::string greeting(1, kValidate);
  AppendNumber(kMagic, &greeting);
  if (absl::Status sent = SendUntil(socket->get(), greeting, until); !sent.ok()) return sent;
  return TorchClient(*std::move(socket));
}

absl::StatusOr<std::string> TorchClient::Receive(size_t bytes, TimePoint until) {
  std::string came;
  while (came.size() < bytes) {
    absl::Status got = ReceiveUntil(socket_.get(), bytes - came.size(), until, &came);
    if (!got.ok()) return got;
  }
  return came;
}

absl::StatusOr<unsigned char> TorchClient::ReceiveByte(TimePoint until) {
  const absl::StatusOr<std::string> byte = Receive(1, until);
  if (!byte.ok()) return byte.status();
  return static_cast<unsigned char>(byte->front());
}

absl::StatusOr<std::string> TorchClient::ReceiveValue(TimePoint until) {
  absl::StatusOr<std::string> length = Receive(sizeof(uint64_t), until);
  if (!length.ok()) return length;
  uint64_t bytes = 0;
  std::memcpy(&bytes, length->data(), sizeof(bytes));
  if (bytes > kLongestValue) {
    return absl::UnavailableError(
        absl::StrCat("it has a value of ", bytes, " bytes, which is not hvd's"));
  }
  return Receive(bytes, until);
}

absl::Status TorchClient::Set(absl::string_view key, absl::string_view value, TimePoint until) {
  std::string text(1, kSet);
  AppendText(key, &text);
  AppendText(value, &text);
  return SendUntil(socket_.get(), text, until);
}

absl::Status TorchClient::Wait(const std::vector<std::string>& keys, TimePoint until) {
  absl::Status sent = SendUntil(socket_.get(), AskOf(kWait, keys), until);
  if (!sent.ok()) return sent;
  const absl::StatusOr<unsigned char> answer = ReceiveByte(until);
  if (!answer.ok()) return answer.status();
  return *answer == kStopWaiting ? absl::OkStatus() : Foreign("WAIT", *answer);
}

// The keys may have come meanwhile: that answer is then on its way, before this one's.
absl::Status TorchClient::GiveUp(TimePoint until) {
  absl::Status sent = SendUntil(socket_.get(), std::string(1, kCancelWait), until);
  if (!sent.ok()) return sent;
  absl::StatusOr<unsigned char> answer = ReceiveByte(until);
  if (answer.ok() && *answer == kStopWaiting) answer = ReceiveByte(until);
  if (!answer.ok()) return answer.status();
  return *answer == kWaitCancelled ? absl::OkStatus() : Foreign("CANCEL_WAIT", *answer);
}

absl::StatusOr<bool> TorchClient::Has(const std::string& key, TimePoint until) {
  absl::Status sent = SendUntil(socket_.get(), AskOf(kCheck, {key}), until);
  if (!sent.ok()) return sent;
  const absl::StatusOr<unsigned char> answer = ReceiveByte(until);
  if (!answer.ok()) return answer.status();
  if (*answer != kReady && *answer != kNotReady) return Foreign("CHECK", *answer);
  return *answer == kReady;
}

absl::StatusOr<std::vector<std::string>> TorchClient::Get(const std::vector<std::string>& keys,
                                                          TimePoint until) {
  std::vector<std::string> values;
  while (values.size() < keys.size()) {
    const size_t end = std::min(values.size() + kGetsAtOnce, keys.size());
    std::string text;
    for (size_t i = values.size(); i < end; ++i) {
      text.push_back(kGet);
      AppendText(keys[i], &text);
    }
    if (absl::Status sent = SendUntil(socket_.get(), text, until); !sent.ok()) return sent;
    while (values.size() < end) {
      absl::StatusOr<std::string> value = ReceiveValue(until);
      if (!value.ok()) return value.status();
      values.push_back(*std::move(value));
    }
  }
  return values;
}

}  // namespace hvd::rt
