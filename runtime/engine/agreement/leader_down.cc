#include <algorithm>
#include <utility>

#include "runtime/engine/agreement/leader_core.h"

namespace hvd {

absl::StatusOr<LeaderCore::Turn> LeaderCore::TakeTurn() {
  appended_ = false;
  if (absl::Status taken = TakeBoard(); !taken.ok()) return taken;
  if (is_root() && !ready_.empty()) {
    if (absl::Status closed = CloseBatch(); !closed.ok()) return closed;
  }
  if (absl::Status appended = AppendHeld(); !appended.ok()) return appended;
  if (owes_bye() && HeardAllByes()) up_.bye = said_bye_ = true;
  Turn turn;
  if (!up_.empty()) turn.up = std::exchange(up_, {});
  turn.down = std::exchange(down_, {});
  turn.appended = appended_;
  return turn;
}

absl::Status LeaderCore::CloseBatch() {
  ++turn_;
  held_.emplace_back();
  std::vector<LeaderTensor*> batch;
  batch.swap(ready_);
  AgreementMessage message;
  for (LeaderTensor* tensor : batch) {
    Decision decision = DecideTensor(tensor);
    if (absl::Status applied = Apply(decision); !applied.ok()) return applied;
    message.decisions.push_back(std::move(decision));
  }
  message.retired = PickRetired();
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
      const int ranks = parts_.topology->hosts()[host].ranks;
      std::copy_n(report.rows.begin() + static_cast<ptrdiff_t>(at), ranks,
                  decision.rows.begin() + parts_.topology->first_rank(host));
      at += static_cast<size_t>(ranks);
    }
  }
  const bool has_id = tensor->id != 0 && !tensor->retired;
  const bool new_id = !has_id && fine;
  if (!has_id) decision.name = tensor->name;
  decision.id = new_id ? ++last_id_ : (has_id ? tensor->id : 0);
  decision.has_signature = fine && (new_id || !tensor->all_same);
  if (decision.has_signature) decision.signature = entry.signature;
  tensor->used = turn_;
  ++decided_;
  return decision;
}

absl::Status LeaderCore::FromAbove(const AgreementMessage& message) {
  if (!message.decisions.empty()) held_.emplace_back();
  for (const Decision& decision : message.decisions) {
    if (absl::Status applied = Apply(decision); !applied.ok()) return applied;
  }
  if (!children_.empty()) down_.push_back(message);
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
  for (Left& left : lefts_) left.names.erase(tensor->name);
  if (decision.error.empty() && tensor->agreed.kind == RequestKind::kJoin) joined_ = 0;
  tensors_.ForgetIfIdle(tensor);
  return absl::OkStatus();
}

absl::Status LeaderCore::AppendHeld() {
  while (!held_.empty()) {
    std::vector<LogEntry> batch;
    for (Held& held : held_.front()) {
      if (held.entry.number == 0) {
        const auto number = parts_.board->Adopt(held.name);
        if (!number.ok()) return number.status();
        if (!number->has_value()) return absl::OkStatus();
        held.entry.number = **number;
      }
    }
    for (Held& held : held_.front()) batch.push_back(std::move(held.entry));
    held_.pop_front();
    parts_.board->Append(batch);
    appended_ = true;
  }
  return absl::OkStatus();
}

// The tensors that have not been used for longest, when there are too many. The next ones only once
// all hosts have forgotten these: then no report can name them any more. What is pending somewhere
// keeps its id; where hardly anything is idle, the next look waits for as many decisions as make up
// for it.
std::vector<uint64_t> LeaderCore::PickRetired() {
  std::vector<uint64_t> picked;
  if (tensors_.ids() <= most_ids() || !retiring_.empty() || decided_ < look_at_) return picked;
  std::vector<LeaderTensor*> idle;
  tensors_.ForEach([&idle](LeaderTensor* tensor) {
    if (tensor->id != 0 && !tensor->in_use()) idle.push_back(tensor);
  });
  const size_t wanted = most_ids() / 4 + 1;
  const size_t count = std::min(idle.size(), wanted);
  if (count < wanted) look_at_ = decided_ + wanted;
  std::partial_sort(idle.begin(), idle.begin() + static_cast<ptrdiff_t>(count), idle.end(),
                    [](const LeaderTensor* a, const LeaderTensor* b) {
                      return a->used != b->used ? a->used < b->used : a->id < b->id;
                    });
  for (size_t i = 0; i < count; ++i) picked.push_back(idle[i]->id);
  return picked;
}

// Reports that are on the way from below may still use these ids; this host's own do not any more.
void LeaderCore::Retire(const std::vector<uint64_t>& ids) {
  for (const uint64_t id : ids) {
    if (LeaderTensor* tensor = tensors_.FindId(id)) tensor->retired = true;
  }
  retiring_ = ids;
  retiring_children_ = static_cast<int>(children_.size());
  if (children_.empty()) FinishRetiring();
}

void LeaderCore::FinishRetiring() {
  for (const uint64_t id : retiring_) tensors_.DropId(id);
  retiring_.clear();
  if (!is_root()) up_.has_retired = true;
}

}  // namespace hvd
