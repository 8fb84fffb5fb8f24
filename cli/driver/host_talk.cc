// SPDX-License-Identifier: Apache-2.0
#include "cli/driver/host_talk.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/printable.h"
#include "cli/link/frame.h"
#include "cli/reach/ssh_failure.h"

namespace hvd::cli {
namespace {

constexpr double kLongestLookS = 5;
constexpr int kNothing = -2;

}  // namespace

HostTalk::HostTalk(const Topology& topology, const Parts& parts)
    : parts_(parts), told_ranks_(topology.size()) {
  std::iota(told_ranks_.begin(), told_ranks_.end(), 0);
}

void HostTalk::Take(std::vector<Arrival> arrivals) {
  for (Arrival& arrival : arrivals) {
    switch (arrival.kind) {
      case Arrival::kBeat:
        parts_.timeline->recording().Heard(arrival.host, arrival.trip);
        break;
      case Arrival::kEvent:
        OnEvent(arrival.host, arrival.event);
        break;
      case Arrival::kOutput:
        OnOutput(arrival.host, &arrival.output);
        break;
      case Arrival::kStore:
        parts_.store->Take(arrival.host, arrival.store, MonotonicSeconds());
        break;
      case Arrival::kEnded:
        OnLinkEnded(arrival.host);
        break;
    }
  }
}

void HostTalk::Send(int host, const v1::Command& command) {
  if (host != kAllHosts) return parts_.links->Send(host, command);
  for (int each = 0; each < parts_.hosts->count(); ++each) parts_.links->Send(each, command);
}

void HostTalk::OnEvent(int host, const v1::Event& event) {
  if (event.has_timeline_asked()) return parts_.timeline->Asked(host, event.timeline_asked());
  if (event.kind_case() == v1::Event::kStdinCredit) {
    parts_.feed->Taken(host, event.stdin_credit().bytes());
    return parts_.console->GiveStdinRoom();
  }
  parts_.state->Heard(host, event, MonotonicSeconds());
}

// ---- output ----

void HostTalk::OnOutput(int host, v1::OutputChunk* chunk) {
  parts_.hosts->ports[host].output_received += chunk->data().size();
  if (chunk->is_timeline()) return parts_.timeline->recording().Take(host, chunk);
  if (!chunk->file_lost().empty()) {
    parts_.state->mutable_facts()->lost_files.push_back(
        absl::StrCat("host ", parts_.hosts->Name(host), ": ", Printable(chunk->file_lost())));
  }
  const int index = parts_.state->facts().IndexOf(chunk->member());
  if (index < 0) return;
  TellRank(index);
  PassOutput(index, *chunk);
  parts_.state->StreamMoved(index, chunk->end(), MonotonicSeconds());
}

void HostTalk::PassOutput(int index, const v1::OutputChunk& chunk) {
  size_t at = 0;
  do {
    Frame frame;
    frame.kind = FrameKind::kOutput;
    frame.index = index;
    frame.is_stderr = chunk.is_stderr();
    frame.text = chunk.data().substr(at, kMaxFrameText);
    at += frame.text.size();
    const bool last = at >= chunk.data().size();
    frame.number = last ? chunk.skipped_lines() : 0;
    frame.end = last && chunk.end();
    parts_.console->PutInOrder(std::move(frame));
  } while (at < chunk.data().size());
  parts_.console->Send();
}

// Tells the console which rank this member is by now, where it does not know.
void HostTalk::TellRank(int index) {
  const RankFact& fact = parts_.state->facts().ranks[index];
  if (told_ranks_.size() <= static_cast<size_t>(index)) told_ranks_.resize(index + 1, kNothing);
  if (std::exchange(told_ranks_[index], fact.rank) == fact.rank) return;
  Frame frame;
  frame.kind = FrameKind::kRank;
  frame.index = index;
  frame.number = fact.rank < 0 ? index : fact.rank;
  frame.text = parts_.hosts->Name(fact.host);
  parts_.console->PutInOrder(std::move(frame));
}

void HostTalk::Acknowledge() {
  if (parts_.console->is_slow()) return;
  for (int host = 0; host < parts_.hosts->count(); ++host) {
    HostPort& port = parts_.hosts->ports[host];
    if (port.output_acknowledged == port.output_received) continue;
    port.output_acknowledged = port.output_received;
    parts_.links->AckOutput(host, port.output_received);
  }
}

// ---- hosts that are lost ----

double HostTalk::LookAtLeases(double now) {
  double next = now + std::min(parts_.options->lease_s / 4, kLongestLookS);
  for (int host = 0; host < parts_.hosts->count(); ++host) {
    if (parts_.state->facts().hosts[host].phase == HostFact::kGone) continue;
    if (now < parts_.links->deadline(host)) {
      next = std::min(next, parts_.links->deadline(host));
    } else {
      GiveUp(host, now);
    }
  }
  return next;
}

void HostTalk::GiveUp(int host, double now) {
  parts_.links->GiveUp(host);
  parts_.state->HostLost(
      host,
      absl::StrFormat("no sign of life for %.1f s (--lease %g s): machine, network or remote shell "
                      "is stuck",
                      now - parts_.links->proven(host), parts_.options->lease_s),
      now);
  parts_.state->HostDetail(host, {"its ranks end with the lease", ""}, now);
  parts_.starts->Kill(host);  // it may be stopped, and would outlive us
}

void HostTalk::OnLinkEnded(int host) {
  HostPort& port = parts_.hosts->ports[host];
  port.link_ended = true;
  if (parts_.options->elastic) parts_.starts->Kill(host);  // its shell may live on
  parts_.starts->TakeSpawner();  // its death comes before that of its children
  parts_.timeline->recording().HostEnded(host);
  parts_.store->HostEnded(host);
  if (parts_.state->facts().hosts[host].phase == HostFact::kGone) return;
  parts_.state->HostLost(host, "the connection to its hvdd closed", MonotonicSeconds());
  if (port.ended.cause.empty()) return;
  parts_.state->HostDetail(host, port.ended, MonotonicSeconds());
}

void HostTalk::ExplainEnds() {
  for (int host = 0; host < parts_.hosts->count(); ++host) {
    const HostPort& port = parts_.hosts->ports[host];
    if (!port.greeted || !port.ended.cause.empty()) continue;
    const std::string shell = ShellName(*parts_.options, parts_.hosts->targets[host]);
    if (!port.link_ended || shell.empty()) continue;
    parts_.state->HostDetail(host, ExplainForeignBytes(shell, parts_.hosts->Name(host)),
                             MonotonicSeconds());
  }
}

}  // namespace hvd::cli
