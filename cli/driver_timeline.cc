#include "cli/driver_timeline.h"

#include <algorithm>
#include <utility>

namespace hvd {
namespace {

constexpr size_t kMostEarly = 4 << 20;  // a quarter of a second's worth, at most

}  // namespace

DriverTimeline::DriverTimeline(const Topology& topology)
    : topology_(topology), hosts_(topology.hosts().size()) {}

absl::Status DriverTimeline::Begin(const std::string& path) {
  if (!file_) file_.emplace(topology_);
  absl::Status begun = file_->Begin(path);
  if (!begun.ok()) return begun;
  on_ = true;
  path_ = path;
  return absl::OkStatus();
}

void DriverTimeline::BeginEnd() {
  ending_ = true;
  for (Host& host : hosts_) host.marked = host.ended;
}

bool DriverTimeline::EndIfAllMarked() {
  const bool all = std::all_of(hosts_.begin(), hosts_.end(),
                               [](const Host& host) { return host.marked && host.early.empty(); });
  if (!ending_ || !all) return false;
  file_->End();
  on_ = ending_ = false;
  return true;
}

bool DriverTimeline::Heard(int host, const BeatRoundTrip& trip) {
  Host& from = hosts_[host];
  from.clock.Add(trip);
  if (!from.early.empty() && from.clock.offset_ns()) Pass(host, std::exchange(from.early, {}));
  return EndIfAllMarked();
}

void DriverTimeline::Pass(int host, std::string bytes) {
  if (file_) file_->Take(host, std::move(bytes), hosts_[host].clock.offset_ns().value_or(0));
}

bool DriverTimeline::Take(int host, v1::OutputChunk* chunk) {
  Host& from = hosts_[host];
  if (from.clock.offset_ns() || from.early.size() > kMostEarly) {
    if (!from.early.empty()) Pass(host, std::exchange(from.early, {}));
    Pass(host, std::move(*chunk->mutable_data()));
  } else {
    from.early += chunk->data();
  }
  if (chunk->end()) from.ended = true;
  if (chunk->end() || chunk->skipped_lines() != 0) from.marked = true;
  return EndIfAllMarked();
}

bool DriverTimeline::HostEnded(int host) {
  Host& from = hosts_[host];
  from.ended = from.marked = true;
  if (!from.early.empty()) Pass(host, std::exchange(from.early, {}));
  return EndIfAllMarked();
}

bool DriverTimeline::open() const {
  return on_ && std::any_of(hosts_.begin(), hosts_.end(),
                            [](const Host& host) { return !host.ended || !host.early.empty(); });
}

std::string DriverTimeline::Finish(double seconds) {
  if (!file_) return "";
  // A job may be shorter than the first round trip.
  for (size_t host = 0; host < hosts_.size(); ++host) {
    if (!hosts_[host].early.empty()) Pass(host, std::move(hosts_[host].early));
  }
  return file_->Finish(seconds);
}

}  // namespace hvd
