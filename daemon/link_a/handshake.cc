// SPDX-License-Identifier: Apache-2.0
#include "daemon/link_a/handshake.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/hmac_sha256.h"

namespace hvd::daemon {
namespace {

constexpr size_t kNonceBytes = 32;
constexpr size_t kDigestBytes = 32;

absl::Status Await(int socket, short events, TimePoint until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
  pollfd ready{socket, events, 0};
  const int count = poll(&ready, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
  if (count > 0) return absl::OkStatus();
  if (count < 0 && errno == EINTR) return absl::OkStatus();
  return absl::DeadlineExceededError("the other side says nothing");
}

absl::Status SendAll(int socket, absl::string_view bytes, TimePoint until) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) bytes.remove_prefix(sent);
    if (sent >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return absl::UnavailableError(strerrordesc_np(errno));
    if (absl::Status waited = Await(socket, POLLOUT, until); !waited.ok()) return waited;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReceiveAll(int socket, size_t bytes, TimePoint until) {
  std::string got(bytes, '\0');
  size_t at = 0;
  while (at < bytes) {
    const ssize_t came = recv(socket, got.data() + at, bytes - at, MSG_DONTWAIT);
    if (came == 0) return absl::UnavailableError("the other side has hung up");
    if (came > 0) at += came;
    if (came > 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return absl::UnavailableError(strerrordesc_np(errno));
    if (absl::Status waited = Await(socket, POLLIN, until); !waited.ok()) return waited;
  }
  return got;
}

absl::StatusOr<std::string> MakeNonce() {
  std::string nonce(kNonceBytes, '\0');
  if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) {
    return absl::UnavailableError("the kernel gives no random bytes");
  }
  return nonce;
}

std::string CallerProof(const std::string& secret, absl::string_view called,
                        absl::string_view caller, absl::string_view command) {
  return std::string(
      AsText(HmacSha256(secret, absl::StrCat("hvd dial 1", called, caller, command))));
}

std::string CalledProof(const std::string& secret, absl::string_view called,
                        absl::string_view caller) {
  return std::string(AsText(HmacSha256(secret, absl::StrCat("hvd await 1", caller, called))));
}

absl::Status Stranger() {
  return absl::PermissionDeniedError("the other side does not know the secret of this job");
}

}  // namespace

absl::Status ProveAndAsk(int socket, const std::string& secret, const std::string& command,
                         TimePoint until) {
  if (secret.size() < kLeastDialSecret || command.size() > kMostDialCommand) {
    return absl::InvalidArgumentError("no secret, or a command that is too long");
  }
  const absl::StatusOr<std::string> called = ReceiveAll(socket, kNonceBytes, until);
  if (!called.ok()) return called.status();
  const absl::StatusOr<std::string> caller = MakeNonce();
  if (!caller.ok()) return caller.status();
  const auto length = static_cast<uint32_t>(command.size());
  std::string words = *caller;
  words.append(reinterpret_cast<const char*>(&length), sizeof(length));
  absl::StrAppend(&words, command, CallerProof(secret, *called, *caller, command));
  if (absl::Status sent = SendAll(socket, words, until); !sent.ok()) return sent;
  const absl::StatusOr<std::string> proof = ReceiveAll(socket, kDigestBytes, until);
  if (!proof.ok()) return proof.status();
  return SameDigest(*proof, CalledProof(secret, *called, *caller)) ? absl::OkStatus() : Stranger();
}

absl::StatusOr<std::string> ProveAndHear(int socket, const std::string& secret, TimePoint until) {
  if (secret.size() < kLeastDialSecret) return absl::InvalidArgumentError("no secret");
  const absl::StatusOr<std::string> called = MakeNonce();
  if (!called.ok()) return called.status();
  if (absl::Status sent = SendAll(socket, *called, until); !sent.ok()) return sent;
  const absl::StatusOr<std::string> head =
      ReceiveAll(socket, kNonceBytes + sizeof(uint32_t), until);
  if (!head.ok()) return head.status();
  const std::string caller = head->substr(0, kNonceBytes);
  uint32_t length = 0;
  memcpy(&length, head->data() + kNonceBytes, sizeof(length));
  if (length > kMostDialCommand) return Stranger();
  absl::StatusOr<std::string> rest = ReceiveAll(socket, length + kDigestBytes, until);
  if (!rest.ok()) return rest.status();
  std::string command = rest->substr(0, length);
  if (!SameDigest(rest->substr(length), CallerProof(secret, *called, caller, command))) {
    return Stranger();
  }
  absl::Status sent = SendAll(socket, CalledProof(secret, *called, caller), until);
  if (!sent.ok()) return sent;
  return command;
}

}  // namespace hvd::daemon
