// SPDX-License-Identifier: Apache-2.0
#include "runtime/adoption/claim_door.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/descriptor_mail.h"
#include "proto/adoption.h"

namespace hvd::rt {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;

constexpr std::string_view kRefusal = "refused: ";
constexpr std::chrono::milliseconds kTryAgain(20);
constexpr std::chrono::seconds kTellAfter(15);
constexpr size_t kMostWords = size_t{256} * 1024;  // more than a socket takes at once

absl::Status Failed(const char* what) {
  return absl::UnavailableError(
      absl::StrCat("joining the launcher's other processes: ", what, ": ", strerror(errno)));
}

int MillisecondsTo(TimePoint until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      until - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

bool IsOwnUser(int socket) {
  ucred who{};
  socklen_t size = sizeof(who);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid();
}

bool Refuse(const std::string& name, const std::string& words) {
  const ClaimAddress address(name);
  const Descriptor talk(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return talk.valid() && connect(talk.get(), address.get(), address.size) == 0 &&
         SendMail(talk.get(), {words.data(), words.size()}, {}, 0) > 0;
}

// The one message that comes, with the door.
bool Receive(int socket, std::string* words, Descriptor* door) {
  words->resize(kMostWords);
  std::vector<Descriptor> came;
  const ssize_t got = ReceiveMail(socket, words->data(), words->size(), &came);
  words->resize(std::max<ssize_t>(got, 0));
  if (got <= 0 || came.size() != 1) return false;
  *door = std::move(came[0]);
  return true;
}

// Leaves `claim` without a connection where whoever has come is none of ours, is gone, or is
// another rank that says why there is no place.
void Take(int listener, TimePoint until, Claim* claim, std::string* refusal) {
  Descriptor talk(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!talk.valid() || !IsOwnUser(talk.get())) return;
  pollfd ready{talk.get(), POLLIN, 0};
  std::string words;
  if (poll(&ready, 1, MillisecondsTo(until)) != 1) return;
  if (!Receive(talk.get(), &words, &claim->door)) {
    if (words.rfind(kRefusal, 0) == 0) refusal->assign(words, kRefusal.size());
    return;
  }
  for (const absl::string_view entry : absl::StrSplit(words, '\0', absl::SkipEmpty())) {
    claim->environment.emplace_back(entry);
  }
  const ClaimWord taken{ClaimWord::kTaken, getppid()};
  if (send(talk.get(), &taken, sizeof(taken), MSG_NOSIGNAL) == sizeof(taken)) {
    claim->talk = std::move(talk);
  }
}

// Whether the helper lives, or has done its part.
bool Goes(Descriptor* helper) {
  char word;
  const ssize_t got = read(helper->get(), &word, 1);
  if (got == 1 && word == 'c') helper->Reset();  // "called": the daemon is coming
  return got == 1 || (got < 0 && errno == EINTR);
}

}  // namespace

absl::StatusOr<ClaimDoor> ClaimDoor::Open(const std::string& name) {
  const ClaimAddress address(name);
  Descriptor listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return Failed("a socket");
  if (bind(listener.get(), address.get(), address.size) != 0) {
    if (errno != EADDRINUSE) return Failed("a socket's name");
    return absl::AlreadyExistsError(
        "another process holds this rank's place, or another user its name: each process of a "
        "launcher is one rank, and what it starts itself is none (HVD_STANDALONE=1 lets that use "
        "hvd alone)");
  }
  if (listen(listener.get(), 4) != 0) return Failed("listening");
  return ClaimDoor(std::move(listener));
}

absl::StatusOr<Claim> ClaimDoor::Await(Descriptor helper, std::string waits, TimePoint until) {
  const TimePoint told_at = std::min(until, std::chrono::steady_clock::now() + kTellAfter);
  while (true) {
    pollfd ready[] = {{listener_.get(), POLLIN, 0}, {helper.get(), POLLIN, 0}};
    const int count = poll(ready, 2, MillisecondsTo(waits.empty() ? until : told_at));
    if (count < 0 && errno != EINTR) return Failed("waiting");
    if (count == 0 && !waits.empty()) {
      fprintf(stderr, "hvd: %s\n", std::exchange(waits, "").c_str());
      continue;
    }
    if (count == 0) {
      return absl::DeadlineExceededError(
          "no daemon of hvd has come for this rank: have all processes of the launcher called "
          "hvd's init? What hvdrun says lies with the first rank's output");
    }
    if (count > 0 && ready[0].revents != 0) {
      Claim claim;
      std::string refusal;
      Take(listener_.get(), until, &claim, &refusal);
      if (claim.talk.valid()) return claim;
      if (!refusal.empty()) return absl::UnavailableError(refusal);
      continue;
    }
    if (count > 0 && ready[1].revents != 0 && !Goes(&helper)) {
      return absl::UnavailableError(
          "hvd's own processes, which were to join the launcher's, have ended; what they said lies "
          "above, or with the first rank's output");
    }
  }
}

void RefuseClaims(std::vector<std::string> names, const std::string& why,
                  std::chrono::milliseconds patience) {
  const TimePoint until = std::chrono::steady_clock::now() + patience;
  const std::string words = std::string(kRefusal) + why;
  const auto is_told = [&words](const std::string& name) { return Refuse(name, words); };
  while (true) {
    names.erase(std::remove_if(names.begin(), names.end(), is_told), names.end());
    if (names.empty() || std::chrono::steady_clock::now() >= until) return;
    poll(nullptr, 0, static_cast<int>(kTryAgain.count()));
  }
}

}  // namespace hvd::rt
