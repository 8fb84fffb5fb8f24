// SPDX-License-Identifier: Apache-2.0
#include "cli/timeline/recording.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/printable.h"

namespace hvd::cli {
namespace {

constexpr size_t kMostEarly = 4 << 20;  // a quarter of a second's worth, at most
constexpr double kPatienceS = 10;       // for the file system, until a file is open, or complete

}  // namespace

void DriverTimeline::Begin(const std::string& path, double now) {
  if (!file_) {
    file_.emplace(topology_);
    if (epoch_.number != 0) file_->BeginEpoch(epoch_);
  }
  file_->Begin(path);
  beginning_ = path;
  begin_until_ = now + kPatienceS;
}

std::optional<absl::Status> DriverTimeline::TakeBegun(double now) {
  if (!beginning()) return std::nullopt;
  if (now >= begin_until_) file_->GiveUpBegin();
  std::optional<absl::Status> begun = file_->TakeBegun();
  if (!begun && now < begin_until_) return std::nullopt;
  const std::string path = std::exchange(beginning_, "");
  begin_until_ = std::numeric_limits<double>::infinity();
  if (!begun) {
    return absl::DeadlineExceededError(absl::StrCat("cannot write the timeline ", Printable(path),
                                                    ": its file system has not answered for ",
                                                    kPatienceS, " s"));
  }
  if (begun->ok()) on_ = true;
  if (begun->ok()) path_ = path;
  return begun;
}

void DriverTimeline::BeginEnd() {
  ending_ = true;
  for (Host& host : hosts_) host.marked = host.ended;
}

void DriverTimeline::EndIfAllMarked() {
  const bool all = std::all_of(hosts_.begin(), hosts_.end(),
                               [](const Host& host) { return host.marked && host.early.empty(); });
  if (!ending_ || all_marked_ || !all) return;
  file_->End();
  all_marked_ = true;
}

std::optional<absl::Status> DriverTimeline::TakeEnded(double now) {
  if (!all_marked_) return std::nullopt;
  end_until_ = std::min(end_until_, now + kPatienceS);
  std::optional<absl::Status> ended = file_->TakeEnded();
  if (!ended && now < end_until_) return std::nullopt;
  end_until_ = std::numeric_limits<double>::infinity();
  on_ = ending_ = all_marked_ = false;
  if (ended) return ended;
  return absl::DeadlineExceededError(
      absl::StrCat("the timeline ", Printable(path_),
                   " is not complete: its file system has not answered for ", kPatienceS, " s"));
}

void DriverTimeline::BeginEpoch(TimelineEpoch epoch) {
  epoch_ = std::move(epoch);
  if (file_) file_->BeginEpoch(epoch_);
}

void DriverTimeline::Heard(int host, const BeatRoundTrip& trip) {
  Host& from = hosts_[host];
  from.clock.Add(trip);
  if (!from.early.empty() && from.clock.offset_ns()) Pass(host, std::exchange(from.early, {}));
  EndIfAllMarked();
}

void DriverTimeline::Pass(int host, std::string bytes) {
  if (file_) file_->Take(host, std::move(bytes), hosts_[host].clock.offset_ns().value_or(0));
}

void DriverTimeline::Take(int host, v1::OutputChunk* chunk) {
  Host& from = hosts_[host];
  if (from.clock.offset_ns() || from.early.size() > kMostEarly) {
    if (!from.early.empty()) Pass(host, std::exchange(from.early, {}));
    Pass(host, std::move(*chunk->mutable_data()));
  } else {
    from.early += chunk->data();
  }
  if (chunk->end()) from.ended = true;
  if (chunk->end() || chunk->recording_ended()) from.marked = true;
  EndIfAllMarked();
}

void DriverTimeline::HostEnded(int host) {
  Host& from = hosts_[host];
  from.ended = from.marked = true;
  if (!from.early.empty()) Pass(host, std::exchange(from.early, {}));
  EndIfAllMarked();
}

bool DriverTimeline::open() const {
  return (on_ || beginning()) && std::any_of(hosts_.begin(), hosts_.end(), [](const Host& host) {
           return !host.ended || !host.early.empty();
         });
}

std::string DriverTimeline::Finish(double seconds) {
  if (!file_) return "";
  // A job may be shorter than the first round trip.
  for (size_t host = 0; host < hosts_.size(); ++host) {
    if (!hosts_[host].early.empty()) Pass(host, std::move(hosts_[host].early));
  }
  return file_->Finish(seconds);
}

}  // namespace hvd::cli
