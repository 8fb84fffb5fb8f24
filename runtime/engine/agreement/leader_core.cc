// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/leader_core.h"

#include <algorithm>
#include <utility>

namespace hvd::rt {
namespace {

// All hosts' rows of one tensor, host after host.
bool FitsHosts(const std::vector<int64_t>& rows, const std::vector<HostShape>& hosts) {
  size_t at = 0;
  while (at < rows.size()) {
    if (rows[at] < 0 || rows[at] >= static_cast<int64_t>(hosts.size())) return false;
    at += 1 + static_cast<size_t>(hosts[rows[at]].ranks);
  }
  return at == rows.size();
}

}  // namespace

LeaderCore::LeaderCore(const LeaderCoreParts& parts)
    : parts_(parts),
      sources_(*parts.topology, parts.host, parts.fan_out),
      lefts_(&tensors_),
      last_id_(parts.ids_given),
      retired_(&tensors_, static_cast<int>(children().size())) {}

// A rank that stands for a source, as messages name it.
int LeaderCore::SourceRank(int source) const {
  return parts_.board->GlobalRank(parts_.topology->rank_at(sources_.HostOf(source), 0));
}

absl::Status LeaderCore::OnMessage(int from_host, const AgreementMessage& message) {
  if (!message.aborted.empty()) {
    return parts_.board->Abort({message.aborted.c_str(), message.abort_rank});
  }
  if (!is_root() && from_host == parent()) return FromAbove(message);
  const int source = sources_.Of(from_host);
  if (source < 0) {
    return absl::InternalError("host " + std::to_string(from_host) +
                               " sent an agreement message that it has no business to send");
  }
  return FromBelow(source, message);
}

absl::Status LeaderCore::FromBelow(int source, const AgreementMessage& message) {
  for (const uint64_t id : message.same_ids) {
    UpReport report;
    report.id = id;
    report.same = true;
    report.report.first.rank = SourceRank(source);
    report.report.contributors = sources_.RanksBelow(source);
    absl::Status status = OnReport(source, tensors_.FindId(id), std::move(report));
    if (!status.ok()) return status;
  }
  for (const UpReport& report : message.reports) {
    LeaderTensor* tensor =
        report.id != 0 ? tensors_.FindId(report.id) : &tensors_.FindOrCreate(report.name);
    if (absl::Status status = OnReport(source, tensor, report); !status.ok()) return status;
  }
  for (const LeftNote& left : message.lefts) {
    if (absl::Status status = OnLeft(source, left); !status.ok()) return status;
  }
  if (message.has_retired && retired_.OnChildRetired()) SayRetired();
  if (message.bye) ++byes_;
  return absl::OkStatus();
}

absl::Status LeaderCore::TakeBoard() {
  while (std::optional<OutboxEntry> taken = parts_.board->leader_side().TakeOutbox()) {
    absl::Status status;
    if (taken->is_left) {
      status = OnLeft(0, {taken->left_rank, taken->left_names});
    } else {
      LeaderTensor* tensor = tensors_.FindNumber(taken->number, taken->tenant);
      if (tensor == nullptr) {
        tensor = &tensors_.FindOrCreate(parts_.board->Name(taken->number));
        tensors_.SetNumber(tensor, taken->number, taken->tenant);
      }
      tensor->on_board = true;
      UpReport report;
      report.report = std::move(taken->report);
      status = OnReport(0, tensor, std::move(report));
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status LeaderCore::OnReport(int source, LeaderTensor* tensor, UpReport report) {
  const bool makes_sense = tensor != nullptr && (!report.same || tensor->is_known) &&
                           (tensor->present >> source & 1) == 0 && !tensor->pending &&
                           FitsHosts(report.report.rows, parts_.topology->hosts());
  if (!makes_sense) {
    return absl::InternalError("a report from below host " + std::to_string(parts_.host) +
                               " fits nothing that is known there");
  }
  Merge(tensor, &report);
  tensor->present |= 1u << source;
  if (tensor->kind() == RequestKind::kJoin) OnJoined(source);
  FinishIfAll(tensor);
  return CheckLeft(*tensor);
}

// A report that asks for what was agreed the last time is kept without its signature. Joins are
// never so, that a leader may know them by their kind.
void LeaderCore::Merge(LeaderTensor* tensor, UpReport* more) {
  Report& from = more->report;
  bool same = more->same;
  if (!same && tensor->is_known && !from.other) {
    same = Compatible(tensor->agreed, from.first.signature) &&
           from.first.signature.kind != RequestKind::kJoin;
  }
  Report& into = tensor->report;
  if (tensor->present == 0) {
    tensor->all_same = same;
    into = std::move(from);
    return;
  }
  into.contributors += from.contributors;
  if (into.joined_rank < 0) into.joined_rank = from.joined_rank;
  into.last_joined = from.last_joined;
  into.rows.insert(into.rows.end(), from.rows.begin(), from.rows.end());
  if (into.other || (same && tensor->all_same)) return;
  if (tensor->all_same) into.first.signature = tensor->agreed;
  if (same) from.first.signature = tensor->agreed;
  tensor->all_same = false;
  if (!Compatible(into.first.signature, from.first.signature)) {
    into.other = from.first;
  } else {
    into.other = from.other;
  }
}

// From now on the source is ready for everything that others ask for.
void LeaderCore::OnJoined(int source) {
  joined_ |= 1u << source;
  std::vector<LeaderTensor*> open;
  tensors_.ForEach([&open](LeaderTensor* tensor) {
    if (tensor->present != 0 && tensor->kind() != RequestKind::kJoin) open.push_back(tensor);
  });
  for (LeaderTensor* tensor : open) FinishIfAll(tensor);
}

void LeaderCore::FinishIfAll(LeaderTensor* tensor) {
  const uint32_t missing = sources_.all() & ~tensor->present;
  if ((missing & ~joined_) != 0) return;
  if (missing != 0 && tensor->report.joined_rank < 0) {
    tensor->report.joined_rank = SourceRank(__builtin_ctz(missing));
  }
  tensor->present = 0;
  tensor->pending = true;
  if (is_root()) {
    ready_.push_back(tensor);
  } else {
    ReportUp(tensor);
  }
}

void LeaderCore::ReportUp(LeaderTensor* tensor) {
  Report& report = tensor->report;
  const bool has_id = tensor->id != 0 && !tensor->retired;
  if (has_id && tensor->all_same && report.rows.empty() &&
      report.contributors == sources_.RanksBelow()) {
    up_.same_ids.push_back(tensor->id);
    return;
  }
  UpReport up;
  if (has_id) up.id = tensor->id;
  if (!has_id) up.name = tensor->name;
  up.same = has_id && tensor->all_same;
  if (tensor->all_same) report.first.signature = tensor->agreed;
  up.report = std::move(report);
  up_.reports.push_back(std::move(up));
}

absl::Status LeaderCore::OnLeft(int source, const LeftNote& note) {
  lefts_.Add(source, note);
  if (!is_root()) up_.lefts.push_back({note.rank, lefts_.StillToReport(source, note.names)});
  absl::Status status;
  tensors_.ForEach([&](LeaderTensor* tensor) {
    if (status.ok()) status = CheckLeft(*tensor);
  });
  return status;
}

absl::Status LeaderCore::CheckLeft(const LeaderTensor& tensor) const {
  const int left = lefts_.WhoCannotAnswer(tensor);
  return left < 0 ? absl::OkStatus() : parts_.board->leader_side().AbortLeft(left, tensor.name);
}

absl::StatusOr<LeaderCore::Outcome> LeaderCore::Step() {
  appended_ = false;
  if (absl::Status taken = TakeBoard(); !taken.ok()) return taken;
  if (is_root() && !ready_.empty()) {
    if (absl::Status closed = CloseBatch(); !closed.ok()) return closed;
  }
  if (absl::Status appended = AppendHeld(); !appended.ok()) return appended;
  if (owes_bye() && HeardAllByes()) up_.bye = said_bye_ = true;
  Outcome outcome;
  if (!up_.empty()) outcome.up = std::exchange(up_, {});
  outcome.down = std::exchange(down_, {});
  outcome.appended = appended_;
  return outcome;
}

absl::Status LeaderCore::CloseBatch() {
  ++batches_;
  held_.emplace_back();
  std::vector<LeaderTensor*> batch;
  batch.swap(ready_);
  AgreementMessage message;
  for (LeaderTensor* tensor : batch) {
    Decision decision = DecideTensor(tensor);
    if (absl::Status applied = Apply(decision); !applied.ok()) return applied;
    message.decisions.push_back(std::move(decision));
  }
  message.retired = retired_.Pick(most_ids(), decided_);
  if (!message.retired.empty()) Retire(message.retired);
  down_.push_back(std::move(message));
  return absl::OkStatus();
}

// The root's decision about what all have reported.
Decision LeaderCore::DecideTensor(LeaderTensor* tensor) {
  Report& report = tensor->report;
  if (tensor->all_same) report.first.signature = tensor->agreed;
  const int size = parts_.topology->size();
  LogEntry entry = Decide(tensor->name, report, size);
  Decision decision;
  decision.error = std::move(entry.error);
  decision.result = entry.result;
  if (entry.contributors != size) decision.contributors = entry.contributors;
  const bool fine = decision.error.empty();
  if (fine && entry.signature.kind == RequestKind::kAllgather) {
    decision.rows.resize(static_cast<size_t>(size));
    for (size_t at = 0; at < report.rows.size();) {
      const int host = static_cast<int>(report.rows[at++]);
      for (const int rank : parts_.topology->ranks_of(host)) {
        decision.rows[rank] = report.rows[at++];
      }
    }
  }
  const bool has_id = tensor->id != 0 && !tensor->retired;
  const bool new_id = !has_id && fine;
  if (!has_id) decision.name = tensor->name;
  decision.id = new_id ? ++last_id_ : (has_id ? tensor->id : 0);
  decision.has_signature = fine && (new_id || !tensor->all_same);
  if (decision.has_signature) decision.signature = entry.signature;
  tensor->used = batches_;
  ++decided_;
  return decision;
}

absl::Status LeaderCore::FromAbove(const AgreementMessage& message) {
  if (!message.decisions.empty()) held_.emplace_back();
  for (const Decision& decision : message.decisions) {
    if (absl::Status applied = Apply(decision); !applied.ok()) return applied;
  }
  if (!children().empty()) down_.push_back(message);
  if (!message.retired.empty()) Retire(message.retired);
  return absl::OkStatus();
}

// Takes a decision over and queues it for the board.
absl::Status LeaderCore::Apply(const Decision& decision) {
  LeaderTensor* tensor =
      decision.name.empty() ? tensors_.FindId(decision.id) : &tensors_.FindOrCreate(decision.name);
  const size_t rows = decision.rows.size();
  if (tensor == nullptr ||
      (!tensor->is_known && !decision.has_signature && decision.error.empty()) ||
      (rows != 0 && rows != static_cast<size_t>(parts_.topology->size()))) {
    return absl::InternalError("the root sent a decision that fits nothing on host " +
                               std::to_string(parts_.host));
  }
  if (decision.id != 0 && decision.id != tensor->id) tensors_.SetId(tensor, decision.id);
  if (decision.has_signature) {
    tensor->agreed = decision.signature;
    tensor->is_known = true;
  }
  Held held;
  held.entry.error = decision.error;
  held.entry.rows = decision.rows;
  held.entry.signature = tensor->agreed;
  held.entry.contributors =
      decision.contributors > 0 ? decision.contributors : parts_.topology->size();
  held.entry.result = decision.result;
  if (tensor->on_board) held.entry.number = tensor->number;
  if (!tensor->on_board) held.name = tensor->name;
  held_.back().push_back(std::move(held));
  tensor->on_board = tensor->pending = false;
  tensor->present = 0;
  lefts_.Forget(tensor->name);
  if (decision.error.empty() && tensor->agreed.kind == RequestKind::kJoin) joined_ = 0;
  tensors_.ForgetIfIdle(tensor);
  return absl::OkStatus();
}

absl::Status LeaderCore::AppendHeld() {
  while (!held_.empty()) {
    std::vector<LogEntry> batch;
    for (Held& held : held_.front()) {
      if (held.entry.number == 0) {
        const auto number = parts_.board->leader_side().Adopt(held.name);
        if (!number.ok()) return number.status();
        if (!number->has_value()) return absl::OkStatus();
        held.entry.number = **number;
      }
    }
    for (Held& held : held_.front()) batch.push_back(std::move(held.entry));
    held_.pop_front();
    parts_.board->leader_side().Append(batch);
    appended_ = true;
  }
  return absl::OkStatus();
}

void LeaderCore::Retire(const std::vector<uint64_t>& ids) {
  if (retired_.Retire(ids)) SayRetired();
}

void LeaderCore::SayRetired() {
  if (!is_root()) up_.has_retired = true;
}

}  // namespace hvd::rt
