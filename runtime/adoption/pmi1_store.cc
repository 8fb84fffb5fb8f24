// SPDX-License-Identifier: Apache-2.0
#include "runtime/adoption/pmi1_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "runtime/adoption/pmi1_wire.h"
#include "runtime/adoption/programs_mpi.h"
#include "runtime/adoption/value_text.h"

namespace hvd::rt {
namespace {

constexpr auto kAnswerPatience = std::chrono::seconds(30);  // mpiexec's, of this process alone
constexpr auto kFarewellPatience = std::chrono::seconds(2);
// Older mpiexecs read lines of 1024 bytes, whatever they say of values.
constexpr int kLongestPart = 800;
constexpr int kShortestPart = 16;
constexpr int kMostParts = 99;
constexpr size_t kShown = 100;

class Pmi1Store : public LauncherStore {
 public:
  Pmi1Store(Pmi1Wire wire, int rank, int size) : wire_(std::move(wire)), rank_(rank), size_(size) {}
  ~Pmi1Store() override;

  absl::Status Begin();
  absl::StatusOr<std::vector<std::string>> Exchange(const std::string& mine,
                                                    std::chrono::milliseconds patience) override;
  void Abandon() override { wire_.Abort(Clock::now() + kFarewellPatience); }

 private:
  absl::StatusOr<std::string> Ask(const std::string& question, absl::string_view answer,
                                  TimePoint until);
  absl::Status Put(const std::string& key, absl::string_view value, TimePoint until);
  absl::Status PutParts(const std::string& text, TimePoint until);
  absl::Status AwaitAll(TimePoint until, std::chrono::milliseconds patience);
  absl::StatusOr<std::string> Get(const std::string& key, TimePoint until);
  absl::StatusOr<std::string> GetParts(int rank, TimePoint until);

  Pmi1Wire wire_;
  const int rank_;
  const int size_;
  std::string space_;  // mpiexec's name of the job's values
  int longest_part_ = kLongestPart;
};

std::string KeyOf(int rank, int part) {
  return part == 0 ? absl::StrCat("hvd-", rank) : absl::StrCat("hvd-", rank, "-", part);
}

// mpiexec takes the end of a process that has begun with PMI for a crash, unless the process takes
// its leave. mpiexec hears nothing after that, and MPI_Finalize would die of a broken pipe.
Pmi1Store::~Pmi1Store() {
  if (!ProgramsMpiHasBegun()) wire_.Finalize(Clock::now() + kFarewellPatience);
}

// An answer whose rc is not zero is a refusal.
absl::StatusOr<std::string> Pmi1Store::Ask(const std::string& question, absl::string_view answer,
                                           TimePoint until) {
  absl::StatusOr<std::string> line = wire_.Ask(question, answer, until);
  if (!line.ok()) return line;
  const absl::string_view result = Pmi1Field(*line, "rc");
  if (result.empty() || result == "0") return line;
  return absl::FailedPreconditionError(
      absl::StrCat(wire_.name(), " refuses ", question.substr(0, question.find(" value=")), ": ",
                   Printable(*line, kShown), "; next: start the program by hvdrun"));
}

// Where the program's MPI has begun with PMI before, mpiexec may refuse a second init, and Slurm
// does not even answer it. They serve all the same.
absl::Status Pmi1Store::Begin() {
  const TimePoint until = Clock::now() + kAnswerPatience;
  if (!ProgramsMpiHasBegun()) {
    const auto begun = wire_.Ask("init pmi_version=1 pmi_subversion=1", "response_to_init", until);
    if (!begun.ok()) return begun.status();
  }
  const auto maxes = Ask("get_maxes", "maxes", until);
  if (!maxes.ok()) return maxes.status();
  int longest = 0;
  if (!absl::SimpleAtoi(Pmi1Field(*maxes, "vallen_max"), &longest) || longest <= kShortestPart) {
    return absl::UnavailableError(absl::StrCat(wire_.name(),
                                               " keeps no values: ", Printable(*maxes, kShown),
                                               "; next: start the program by hvdrun"));
  }
  longest_part_ = std::min(longest - 1, kLongestPart);  // its end may count, too
  const auto named = Ask("get_my_kvsname", "my_kvsname", until);
  if (!named.ok()) return named.status();
  space_ = std::string(Pmi1Field(*named, "kvsname"));
  return absl::OkStatus();
}

absl::Status Pmi1Store::Put(const std::string& key, absl::string_view value, TimePoint until) {
  return Ask(absl::StrCat("put kvsname=", space_, " key=", key, " value=", value), "put_result",
             until)
      .status();
}

// The first part begins with their count, "2:".
absl::Status Pmi1Store::PutParts(const std::string& text, TimePoint until) {
  const size_t each = static_cast<size_t>(longest_part_) - 3;
  const size_t parts = std::max<size_t>((text.size() + each - 1) / each, 1);
  if (parts > kMostParts) {
    return absl::InvalidArgumentError(
        absl::StrCat("a value of ", text.size() / 2, " bytes is too long for ", wire_.name()));
  }
  for (size_t part = 0; part < parts; ++part) {
    const std::string count = part == 0 ? absl::StrCat(parts, ":") : "";
    const std::string value = absl::StrCat(count, text.substr(part * each, each));
    absl::Status put = Put(KeyOf(rank_, static_cast<int>(part)), value, until);
    if (!put.ok()) return put;
  }
  return absl::OkStatus();
}

absl::Status Pmi1Store::AwaitAll(TimePoint until, std::chrono::milliseconds patience) {
  absl::Status all = Ask("barrier_in", "barrier_out", until).status();
  if (!absl::IsDeadlineExceeded(all)) return all;
  return absl::DeadlineExceededError(
      absl::StrCat("not all of mpiexec's ", size_, " processes have come in ",
                   std::chrono::duration<double>(patience).count(),
                   " s; next: look that every one of them calls hvd's init"));
}

absl::StatusOr<std::string> Pmi1Store::Get(const std::string& key, TimePoint until) {
  const auto line = Ask(absl::StrCat("get kvsname=", space_, " key=", key), "get_result", until);
  if (!line.ok()) return line.status();
  return std::string(Pmi1Field(*line, "value"));
}

absl::StatusOr<std::string> Pmi1Store::GetParts(int rank, TimePoint until) {
  absl::StatusOr<std::string> first = Get(KeyOf(rank, 0), until);
  if (!first.ok()) return first;
  const size_t colon = first->find(':');
  int parts = 0;
  const bool counted = colon != std::string::npos &&
                       absl::SimpleAtoi(first->substr(0, colon), &parts) && parts >= 1 &&
                       parts <= kMostParts;
  std::string text = counted ? first->substr(colon + 1) : "";
  for (int part = 1; part < parts && counted; ++part) {
    absl::StatusOr<std::string> more = Get(KeyOf(rank, part), until);
    if (!more.ok()) return more;
    text += *more;
  }
  const std::optional<std::string> bytes = ParseValueText(text);
  if (counted && bytes.has_value()) return *bytes;
  return absl::UnavailableError(
      absl::StrCat(wire_.name(), " has something else than rank ", rank, " gave: \"",
                   Printable(counted ? text : *first, kShown),
                   "\"; next: look whether all processes have the same hvd"));
}

absl::StatusOr<std::vector<std::string>> Pmi1Store::Exchange(const std::string& mine,
                                                             std::chrono::milliseconds patience) {
  absl::Status done = PutParts(ValueText(mine), Clock::now() + kAnswerPatience);
  if (done.ok()) done = AwaitAll(Clock::now() + patience, patience);
  if (!done.ok()) return done;
  std::vector<std::string> all;
  for (int rank = 0; rank < size_; ++rank) {
    absl::StatusOr<std::string> theirs = GetParts(rank, Clock::now() + kAnswerPatience);
    if (!theirs.ok()) return theirs.status();
    all.push_back(*std::move(theirs));
  }
  return all;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LauncherStore>> OpenPmi1Store(int fd, int rank, int size) {
  absl::StatusOr<Pmi1Wire> wire = Pmi1Wire::Open(fd);
  if (!wire.ok()) return wire.status();
  auto store = std::make_unique<Pmi1Store>(*std::move(wire), rank, size);
  if (absl::Status begun = store->Begin(); !begun.ok()) return begun;
  return store;
}

}  // namespace hvd::rt
