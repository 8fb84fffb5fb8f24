#include "runtime/engine/agreement/leader_core.h"

#include <algorithm>

namespace hvd {
namespace {

std::vector<int> RanksBelow(const LeaderCoreParts& parts, const std::vector<int>& children) {
  const auto& hosts = parts.topology->hosts();
  std::vector<int> subtree(hosts.size());
  for (int host = static_cast<int>(hosts.size()) - 1; host >= 0; --host) {
    subtree[host] += hosts[host].ranks;
    if (host > 0) subtree[LeaderTree::Parent(host, parts.fan_out)] += subtree[host];
  }
  std::vector<int> below = {hosts[parts.host].ranks};
  for (const int child : children) below.push_back(subtree[child]);
  return below;
}

}  // namespace

std::vector<int> LeaderTree::Children(int host, int hosts, int fan_out) {
  std::vector<int> children;
  for (int child = host * fan_out + 1; child <= (host + 1) * fan_out && child < hosts; ++child) {
    children.push_back(child);
  }
  return children;
}

LeaderCore::LeaderCore(const LeaderCoreParts& parts)
    : parts_(parts),
      children_(LeaderTree::Children(parts.host, static_cast<int>(parts.topology->hosts().size()),
                                     parts.fan_out)),
      below_(RanksBelow(parts, children_)),
      last_id_(parts.ids_given) {}

int LeaderCore::SourceOf(int host) const {
  const auto found = std::find(children_.begin(), children_.end(), host);
  return found == children_.end() ? -1 : static_cast<int>(found - children_.begin()) + 1;
}

// A rank that stands for a source, as messages name it.
int LeaderCore::SourceRank(int source) const {
  const int host = source == 0 ? parts_.host : children_[source - 1];
  return parts_.board->GlobalRank(parts_.topology->first_rank(host));
}

absl::Status LeaderCore::OnMessage(int from_host, const AgreementMessage& message) {
  if (!message.aborted.empty()) {
    return parts_.board->Abort({message.aborted.c_str(), message.abort_rank});
  }
  if (!is_root() && from_host == parent()) return FromAbove(message);
  const int source = SourceOf(from_host);
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
    report.report.contributors = below_[source];
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
  if (message.has_retired && --retiring_children_ == 0) FinishRetiring();
  if (message.bye) ++byes_;
  return absl::OkStatus();
}

absl::Status LeaderCore::TakeBoard() {
  while (std::optional<OutboxEntry> taken = parts_.board->TakeOutbox()) {
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
                           FitsHosts(report.report.rows);
  if (!makes_sense) {
    return absl::InternalError("a report from below host " + std::to_string(parts_.host) +
                               " fits nothing that is known there");
  }
  Merge(tensor, &report);
  tensor->present |= 1u << source;
  if (tensor->kind() == RequestKind::kJoin) {
    if (absl::Status status = OnJoined(source); !status.ok()) return status;
  }
  FinishIfAll(tensor);
  return lefts_.empty() ? absl::OkStatus() : CheckLeft(*tensor);
}

// All hosts' rows of one tensor, host after host.
bool LeaderCore::FitsHosts(const std::vector<int64_t>& rows) const {
  const auto& hosts = parts_.topology->hosts();
  size_t at = 0;
  while (at < rows.size()) {
    if (rows[at] < 0 || rows[at] >= static_cast<int64_t>(hosts.size())) return false;
    at += 1 + static_cast<size_t>(hosts[rows[at]].ranks);
  }
  return at == rows.size();
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
absl::Status LeaderCore::OnJoined(int source) {
  joined_ |= 1u << source;
  std::vector<LeaderTensor*> open;
  tensors_.ForEach([&open](LeaderTensor* tensor) {
    if (tensor->present != 0 && tensor->kind() != RequestKind::kJoin) open.push_back(tensor);
  });
  for (LeaderTensor* tensor : open) FinishIfAll(tensor);
  return absl::OkStatus();
}

void LeaderCore::FinishIfAll(LeaderTensor* tensor) {
  const uint32_t missing = all_sources() & ~tensor->present;
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
  int below = 0;
  for (const int ranks : below_) below += ranks;
  Report& report = tensor->report;
  const bool has_id = tensor->id != 0 && !tensor->retired;
  if (has_id && tensor->all_same && report.rows.empty() && report.contributors == below) {
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

// A rank that has left answers what it has asked for before, and nothing else.
absl::Status LeaderCore::OnLeft(int source, const LeftNote& note) {
  lefts_.push_back({source, note.rank, {note.names.begin(), note.names.end()}});
  if (!is_root()) up_.lefts.push_back({note.rank, StillToReport(source, note.names)});
  absl::Status status;
  tensors_.ForEach([&](LeaderTensor* tensor) {
    if (status.ok() && tensor->present != 0) status = CheckLeft(*tensor);
  });
  return status;
}

// Of what a rank below `source` that has left is still to answer, what the parent has not heard:
// also what was reported to this leader and waits here for others, but not what was reported
// upwards, which may be decided there by now, and that was all of it. `names`: the same as the
// source says it, which leaves out what it has reported to this leader.
std::vector<std::string> LeaderCore::StillToReport(int source,
                                                   const std::vector<std::string>& names) {
  std::unordered_set<std::string> still(names.begin(), names.end());
  std::erase_if(still, [this](const std::string& name) {
    const LeaderTensor* tensor = tensors_.FindName(name);
    return tensor != nullptr && tensor->pending;
  });
  tensors_.ForEach([&](LeaderTensor* tensor) {
    if ((tensor->present >> source & 1) != 0) still.insert(tensor->name);
  });
  return {still.begin(), still.end()};
}

absl::Status LeaderCore::CheckLeft(const LeaderTensor& tensor) const {
  // Who has left has asked for the leave, and at the end that is everybody.
  if (tensor.present == 0 || tensor.kind() == RequestKind::kLeave) return absl::OkStatus();
  for (const Left& left : lefts_) {
    if ((tensor.present >> left.source & 1) == 0 && left.names.count(tensor.name) == 0) {
      return parts_.board->AbortLeft(left.rank, tensor.name);
    }
  }
  return absl::OkStatus();
}

}  // namespace hvd
