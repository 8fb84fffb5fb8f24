// SPDX-License-Identifier: Apache-2.0
#include "runtime/adoption/pmi1_wire.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/printable.h"
#include "runtime/adoption/store_socket.h"

namespace hvd::rt {
namespace {

constexpr size_t kLongestLine = 1 << 16;
constexpr size_t kShown = 100;  // bytes of what is no answer

}  // namespace

absl::string_view Pmi1Field(absl::string_view line, absl::string_view name) {
  for (const absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
    if (word.size() > name.size() && word[name.size()] == '=' && absl::StartsWith(word, name)) {
      return word.substr(name.size() + 1);
    }
  }
  return {};
}

absl::StatusOr<Pmi1Wire> Pmi1Wire::Open(int fd) {
  std::string name = absl::StrCat("mpiexec at PMI_FD=", fd);
  Descriptor copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (copy.valid()) return Pmi1Wire(std::move(copy), std::move(name));
  return absl::FailedPreconditionError(absl::StrCat(
      "the descriptor of PMI_FD=", fd, " cannot be used: ", strerrordesc_np(errno),
      "; next: call hvd's init before MPI_Finalize, and let no wrapper between mpiexec "
      "and this program close descriptors"));
}

absl::Status Pmi1Wire::Blame(const absl::Status& status, absl::string_view question) {
  if (absl::IsDeadlineExceeded(status)) {
    return absl::DeadlineExceededError(absl::StrCat(name_, " has not answered ", question));
  }
  gone_ = true;
  return absl::UnavailableError(absl::StrCat(
      name_, " does not answer ", question, ": ", status.message(),
      "; next: look whether mpiexec still runs; each of its processes can join once, so a second "
      "program in the same one (sh -c 'a; b') needs an mpiexec of its own"));
}

absl::StatusOr<std::string> Pmi1Wire::ReadLine(TimePoint until) {
  while (true) {
    const size_t end = came_.find('\n');
    if (end != std::string::npos) {
      std::string line = came_.substr(0, end);
      came_.erase(0, end + 1);
      return line;
    }
    if (came_.size() > kLongestLine) return absl::UnavailableError("its line does not end");
    absl::Status got = ReceiveUntil(socket_.get(), kLongestLine, until, &came_);
    if (!got.ok()) return got;
  }
}

absl::StatusOr<std::string> Pmi1Wire::Ask(absl::string_view question, absl::string_view answer,
                                          TimePoint until) {
  const absl::string_view verb = question.substr(0, question.find(' '));
  absl::Status sent = SendUntil(socket_.get(), absl::StrCat("cmd=", question, "\n"), until);
  if (!sent.ok()) return Blame(sent, verb);
  absl::StatusOr<std::string> line = ReadLine(until);
  if (!line.ok()) return Blame(line.status(), verb);
  if (Pmi1Field(*line, "cmd") == answer) return line;
  return absl::UnavailableError(absl::StrCat(name_, " answers ", verb, " with \"",
                                             Printable(*line, kShown),
                                             "\", which is not PMI-1; next: look whether another "
                                             "launcher stands between (PMI_FD is its)"));
}

void Pmi1Wire::Finalize(TimePoint until) {
  if (gone_ || !SendUntil(socket_.get(), "cmd=finalize\n", until).ok()) return;
  while (true) {
    const absl::StatusOr<std::string> line = ReadLine(until);
    if (!line.ok() || Pmi1Field(*line, "cmd") == "finalize_ack") return;
  }
}

void Pmi1Wire::Abort(TimePoint until) {
  if (!gone_) (void)SendUntil(socket_.get(), "cmd=abort exitcode=1\n", until).ok();
}

}  // namespace hvd::rt
