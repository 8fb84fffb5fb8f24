// SPDX-License-Identifier: Apache-2.0
#include "cli/reach/host.h"

#include <errno.h>
#include <sys/socket.h>

#include <array>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "cli/reach/ssh_failure.h"

namespace hvd::cli {
namespace {

constexpr size_t kMaxErrorLine = 4096;
constexpr std::string_view kLoggedInLine = "hvdrun-is-logged-in\n";  // see ssh_command
// The most bytes that one look takes: more than a pipe holds, so that it has all last words, and no
// flood holds us up.
constexpr size_t kMostErrors = 128 * 1024;

// Takes `bytes` that have been looked at already.
void Discard(int fd, size_t bytes) {
  std::array<char, 4096> taken;
  while (bytes > 0) {
    const ssize_t got = recv(fd, taken.data(), std::min(bytes, taken.size()), 0);
    if (got <= 0) return;
    bytes -= got;
  }
}

std::string ProtocolWords(const std::string& host, const Hello& hello) {
  return absl::StrCat("hvdd ", Printable(hello.version), " on ", host, " speaks link protocol ",
                      hello.protocol, ", hvdrun ", HVD_VERSION, " needs ", kLinkAProtocol);
}

}  // namespace

void HostPort::Begin(Descriptor socket, Descriptor errors) {
  socket_ = std::move(socket);
  errors_ = std::move(errors);
  hello_done_ = false;
  logged_in_ = false;
  noise_.clear();
  error_text_.clear();
  error_line_.clear();
  ended = LinkEnd();
  ++attempts;
}

Greeting HostPort::Greet(const std::string& marker, const std::string& host) {
  std::string peeked(kMaxHelloNoise, '\0');
  for (;;) {
    const ssize_t got = recv(socket_.get(), peeked.data(), peeked.size(), MSG_PEEK);
    // An end or an error is explained by the exit of the command behind the socket.
    if (got <= 0) return {};
    const std::string_view seen(peeked.data(), got);
    if (hello_done_) {
      if (seen.size() < kFirstFrameBytes) return {};
      if (IsSettingsFrame(seen)) return {Greeting::kReady, "", ""};
      return {Greeting::kWrong, "something there prints to stdout after the login",
              absl::StrCat("look for a background job in the shell start-up files of ", host,
                           "; the bytes: \n", QuoteLines(std::string(seen.substr(0, 200)), 3))};
    }
    const HelloScan scan = ScanHello(seen, marker);
    TakeNoise(seen.substr(0, scan.noise));
    if (scan.state == HelloScan::kGarbled) {
      return {Greeting::kWrong, "hvdd's hello line is garbled",
              "do the versions of hvdrun and hvdd fit? a start-up file may write to stdout at the "
              "same time"};
    }
    if (noise_.size() > kMaxHelloNoise) {
      return {Greeting::kWrong, "its shell start-up files print without end",
              absl::StrCat("make them silent for logins without a terminal on ", host)};
    }
    if (scan.state == HelloScan::kMore) {
      if (scan.noise == 0) return {};
      Discard(socket_.get(), scan.noise);
      continue;  // what lies behind it makes no edge
    }
    Discard(socket_.get(), scan.consume);
    hello_done_ = true;
    identity_ = scan.hello.host;
    if (scan.hello.protocol != kLinkAProtocol) {
      return {Greeting::kWrong, ProtocolWords(host, scan.hello),
              "install the same version of hvd on all hosts, or name it with --prefix"};
    }
  }
}

void HostPort::TakeNoise(std::string_view noise) {
  noise_.append(noise);
  const size_t at = noise_.find(kLoggedInLine);
  if (at == noise_.npos) return;
  logged_in_ = true;
  noise_.erase(at, kLoggedInLine.size());
}

std::string HostPort::TakeErrors() {
  std::array<char, 4096> taken;
  std::string lines;
  for (size_t all = 0; all < kMostErrors;) {
    const ssize_t got = read(errors_.get(), taken.data(), taken.size());
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errors_.Reset();
    if (got <= 0) break;
    all += got;
    error_text_.append(taken.data(), got);
    error_line_.append(taken.data(), got);
    const size_t end = error_line_.rfind('\n');
    if (end != error_line_.npos || error_line_.size() > kMaxErrorLine) {
      const size_t bytes = end == error_line_.npos ? error_line_.size() : end + 1;
      lines += error_line_.substr(0, bytes);
      error_line_.erase(0, bytes);
    }
  }
  if (error_text_.size() > kMaxHelloNoise) {
    error_text_.erase(0, error_text_.size() - kMaxHelloNoise);
  }
  return lines;
}

std::string HostPort::Evidence() const {
  std::string evidence = QuoteLines(error_text_, 12);
  if (!noise_.empty()) {
    absl::StrAppend(&evidence, "  its stdout instead of hvdd's hello:\n", QuoteLines(noise_, 12));
  }
  return evidence;
}

}  // namespace hvd::cli
