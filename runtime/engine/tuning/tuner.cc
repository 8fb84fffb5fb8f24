// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/tuning/tuner.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/printable.h"

namespace hvd::rt {

absl::StatusOr<std::unique_ptr<Tuner>> Tuner::Make(const Place& place, const EngineConfig& config) {
  if (!config.autotune) return nullptr;
  std::unique_ptr<Tuner> tuner(new Tuner(place, config));
  if (place.rank != 0) return tuner;
  if (absl::Status status = tuner->ReadResult(); !status.ok()) return status;
  if (!tuner->known_) tuner->Log(CsvHead());
  return tuner;
}

Tuner::Tuner(const Place& place, const EngineConfig& config)
    : place_(place),
      config_(config),
      search_(PointOf(config),
              {config.autotune_warmup, config.autotune_samples, place.several_hosts}),
      began_(Clock::now()) {}

absl::Status Tuner::ReadResult() {
  if (config_.autotune_file.empty()) return absl::OkStatus();
  std::ifstream file(config_.autotune_file);
  if (!file) {
    DoubtResultFile();
    return absl::OkStatus();  // it is written at the end
  }
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto point = ParseResult(text, PointOf(config_));
  if (!point.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("HVD_AUTOTUNE_FILE is ", Printable(config_.autotune_file), ": ",
                     point.status().message(), "; give the name of a new file"));
  }
  known_ = *point;
  return absl::OkStatus();
}

bool Tuner::CountBatch(int64_t bytes) {
  bytes_ += bytes;
  return ++batches_ >= config_.autotune_steps;
}

TuneDecision Tuner::Decide() {
  if (place_.rank != 0) return {};
  const Clock::time_point now = Clock::now();
  const std::chrono::duration<double, std::micro> took = now - began_;
  if (known_) return {*known_, 1};
  search_.Score(static_cast<double>(bytes_) / took.count());
  Log(CsvLine(search_.samples().size(), search_.samples().back()));
  if (search_.done()) Finish();
  return {search_.candidate(), search_.done()};
}

bool Tuner::Adopt(const TuneDecision& decision, EngineConfig* config) {
  Apply(decision.point, config);
  batches_ = 0;
  bytes_ = 0;
  began_ = Clock::now();
  return decision.done == 0;
}

void Tuner::Finish() {
  Log(CsvLine(search_.samples().size() + 1, {search_.candidate(), 0, "result"}));
  if (config_.log_level <= LogLevel::kInfo) {
    fprintf(stderr, "hvd: autotune is done after %zu samples\n", search_.samples().size());
  }
  if (config_.autotune_file.empty()) return;
  std::ofstream file(config_.autotune_file);
  file << FormatResult(search_.candidate());
  if (!file.flush()) SayUnwritten("HVD_AUTOTUNE_FILE", config_.autotune_file);
}

// After a try to open it. Better said before a long search than after it.
void Tuner::DoubtResultFile() const {
  const std::string folder = std::filesystem::path(config_.autotune_file).parent_path();
  if (errno == ENOENT && access(folder.empty() ? "." : folder.c_str(), W_OK) == 0) return;
  SayUnwritten("HVD_AUTOTUNE_FILE", config_.autotune_file);
}

// After a stream's failure.
void Tuner::SayUnwritten(const char* setting, const std::string& path) const {
  if (config_.log_level > LogLevel::kWarning) return;
  fprintf(stderr, "hvd: cannot write %s %s: %s\n", setting, Printable(path).c_str(),
          strerror(errno));
}

// Appends: the head begins the file anew.
void Tuner::Log(const std::string& text) {
  if (config_.autotune_log.empty() || log_failed_) return;
  const bool head = search_.samples().empty();
  std::ofstream file(config_.autotune_log, head ? std::ios::trunc : std::ios::app);
  file << text;
  log_failed_ = !file.flush();
  if (log_failed_) SayUnwritten("HVD_AUTOTUNE_LOG", config_.autotune_log);
}

}  // namespace hvd::rt
