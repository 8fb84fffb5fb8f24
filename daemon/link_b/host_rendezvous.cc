#include "daemon/link_b/host_rendezvous.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvd {

using Kind = EpochAction::Kind;

HostRendezvous::HostRendezvous(int local_size, int first_rank)
    : local_size_(local_size),
      first_rank_(first_rank),
      last_epoch_(local_size),
      refusing_(local_size),
      gone_(local_size),
      broke_(local_size),
      refused_(local_size) {}

HostRendezvous::Epoch& HostRendezvous::At(uint64_t number) {
  Epoch& epoch = epochs_[number];
  epoch.stages.resize(local_size_, Stage::kOutside);
  epoch.addresses.resize(local_size_);
  return epoch;
}

bool HostRendezvous::All(const Epoch& epoch, Stage stage) const {
  return std::all_of(epoch.stages.begin(), epoch.stages.end(),
                     [stage](Stage each) { return each == stage; });
}

bool HostRendezvous::in_epoch(int rank) const {
  return std::any_of(epochs_.begin(), epochs_.end(), [rank](const auto& entry) {
    const Stage stage = entry.second.stages[rank];
    return stage != Stage::kOutside && stage != Stage::kLeft && stage != Stage::kGone;
  });
}

bool HostRendezvous::in_live_epoch(int rank) const {
  const auto found = epochs_.find(last_epoch_[rank]);
  return found != epochs_.end() && found->second.aborted.empty() && in_epoch(rank);
}

bool HostRendezvous::after_abort(int rank) const {
  const auto found = epochs_.find(last_epoch_[rank]);
  const bool aborted = found != epochs_.end() && !found->second.aborted.empty();
  return aborted || refused_[rank] || !stopped_.empty();
}

bool HostRendezvous::addressed(int rank, uint64_t number) const {
  const auto found = epochs_.find(number);
  return found != epochs_.end() && found->second.aborted.empty() &&
         found->second.stages[rank] == Stage::kAddressed;
}

EpochActions HostRendezvous::Join(int rank, uint64_t after_epoch, uint64_t bytes) {
  if (in_epoch(rank)) {
    return {
        {Kind::kRefuse, 0, rank, 0, "this rank is in an epoch already; it must leave it first"}};
  }
  if (!stopped_.empty()) return {{Kind::kRefuse, 0, rank, 0, stopped_}};
  // A process that a wrapper starts anew knows of no epoch before; its rank does.
  const uint64_t number = std::max(after_epoch, NewestOf(rank)) + 1;
  Epoch& epoch = At(number);
  refused_[rank] = !epoch.aborted.empty();
  if (refused_[rank]) {
    refusing_[rank] = number;  // once: the others are on their way to the next
    EpochActions refused = {{Kind::kRefuse, number, rank, 0, epoch.aborted}};
    ForgetRefusing();
    return refused;
  }
  EpochActions actions;
  last_epoch_[rank] = number;
  ForgetRefusing();
  broke_[rank] = false;
  epoch.stages[rank] = Stage::kJoined;
  if (!epoch.created) {
    epoch.created = true;
    epoch.bytes = bytes;
    epoch.first_joiner = rank;
    actions.push_back({Kind::kCreate, number, rank, bytes});
  }
  if (bytes != epoch.bytes) {
    AbortOne(number,
             absl::StrCat("rank ", first_rank_ + rank, " asks for ", bytes,
                          " bytes of host memory, rank ", first_rank_ + epoch.first_joiner, " for ",
                          epoch.bytes, "; all ranks of a host must run with the same HVD settings"),
             &actions);
    return actions;
  }
  actions.push_back({Kind::kStart, number, rank});
  for (int other = 0; other < local_size_; ++other) {
    if (!gone_[other].empty() && other != rank) {
      AbortOne(number, gone_[other], &actions);
      break;
    }
  }
  return actions;
}

// A step that only counts when the rank stands right before it; anything else is a confused client.
EpochActions HostRendezvous::Move(int rank, uint64_t number, Stage from, Stage to) {
  const auto found = epochs_.find(number);
  if (found == epochs_.end() || found->second.stages[rank] != from) {
    return {{Kind::kRefuse, number, rank, 0, absl::StrCat("out of turn in epoch ", number)}};
  }
  found->second.stages[rank] = to;
  return {};
}

EpochActions HostRendezvous::Address(int rank, uint64_t number, std::string address) {
  const auto found = epochs_.find(number);
  if (found != epochs_.end() && !found->second.aborted.empty()) return {};
  EpochActions actions = Move(rank, number, Stage::kJoined, Stage::kAddressed);
  if (!actions.empty()) return actions;
  Epoch& epoch = At(number);
  epoch.addresses[rank] = std::move(address);
  if (All(epoch, Stage::kAddressed)) actions.push_back({Kind::kAddresses, number});
  return actions;
}

EpochActions HostRendezvous::Ready(int rank, uint64_t number) {
  const auto found = epochs_.find(number);
  if (found != epochs_.end() && !found->second.aborted.empty()) return {};
  EpochActions actions = Move(rank, number, Stage::kAddressed, Stage::kReady);
  if (actions.empty() && All(At(number), Stage::kReady)) actions.push_back({Kind::kReady, number});
  return actions;
}

EpochActions HostRendezvous::Leave(int rank, uint64_t number) {
  EpochActions actions;
  const auto found = epochs_.find(number);
  if (found == epochs_.end()) return actions;
  Stage& stage = found->second.stages[rank];
  if (stage == Stage::kOutside || stage == Stage::kLeft || stage == Stage::kGone) return actions;
  const bool finished = stage == Stage::kRunning;
  stage = Stage::kLeft;
  actions.push_back({Kind::kLeft, number, rank});
  // Whoever leaves before the start is missed by those who wait for it.
  if (!finished) {
    AbortOne(number, absl::StrCat("rank ", first_rank_ + rank, " left before the epoch began"),
             &actions);
  }
  DisposeIfUnused(number, &actions);
  return actions;
}

EpochActions HostRendezvous::Abandon(int rank) {
  EpochActions actions;
  const auto found = epochs_.find(last_epoch_[rank]);
  if (found == epochs_.end() || found->second.aborted.empty() || !in_epoch(rank)) return actions;
  found->second.stages[rank] = Stage::kGone;
  broke_[rank] = true;
  DisposeIfUnused(last_epoch_[rank], &actions);
  return actions;
}

EpochActions HostRendezvous::Gone(int rank, const std::string& cause) {
  EpochActions actions;
  gone_[rank] = cause;
  std::vector<uint64_t> numbers;
  for (const auto& [number, epoch] : epochs_) numbers.push_back(number);
  for (const uint64_t number : numbers) {
    Epoch& epoch = epochs_[number];
    Stage& stage = epoch.stages[rank];
    if (stage == Stage::kLeft || stage == Stage::kGone) continue;
    if (stage != Stage::kOutside) broke_[rank] = true;
    stage = Stage::kGone;
    AbortOne(number, cause, &actions);
    DisposeIfUnused(number, &actions);
  }
  return actions;
}

EpochActions HostRendezvous::TableCame(uint64_t number) {
  EpochActions actions;
  const auto found = epochs_.find(number);
  if (found == epochs_.end() || !found->second.aborted.empty()) return actions;
  for (int rank = 0; rank < local_size_; ++rank) {
    if (found->second.stages[rank] == Stage::kAddressed) {
      actions.push_back({Kind::kTable, number, rank});
    }
  }
  return actions;
}

EpochActions HostRendezvous::GoCame(uint64_t number) {
  EpochActions actions;
  const auto found = epochs_.find(number);
  if (found == epochs_.end() || !found->second.aborted.empty()) return actions;
  for (int rank = 0; rank < local_size_; ++rank) {
    Stage& stage = found->second.stages[rank];
    if (stage != Stage::kReady) continue;
    stage = Stage::kRunning;
    actions.push_back({Kind::kGo, number, rank});
  }
  return actions;
}

void HostRendezvous::AbortOne(uint64_t number, const std::string& cause, EpochActions* actions) {
  Epoch& epoch = At(number);
  if (!epoch.aborted.empty()) return;
  epoch.aborted = cause.empty() ? "the job was stopped" : cause;
  if (epoch.created) actions->push_back({Kind::kAbort, number, -1, 0, epoch.aborted});
  for (int rank = 0; rank < local_size_; ++rank) {
    const Stage stage = epoch.stages[rank];
    if (stage == Stage::kJoined || stage == Stage::kAddressed || stage == Stage::kReady) {
      actions->push_back({Kind::kRefuse, number, rank, 0, epoch.aborted});
      refused_[rank] = true;
    }
  }
}

EpochActions HostRendezvous::Abort(uint64_t number, const std::string& cause) {
  EpochActions actions;
  if (number != 0) {
    // One that is over for everybody here has nothing left to abort.
    const bool over = epochs_.count(number) == 0 &&
                      number <= *std::max_element(last_epoch_.begin(), last_epoch_.end());
    if (!over) AbortOne(number, cause, &actions);
    return actions;
  }
  std::vector<uint64_t> numbers;
  for (const auto& [each, epoch] : epochs_) numbers.push_back(each);
  if (numbers.empty()) {
    numbers.push_back(*std::max_element(last_epoch_.begin(), last_epoch_.end()) + 1);
  }
  for (const uint64_t each : numbers) AbortOne(each, cause, &actions);
  return actions;
}

EpochActions HostRendezvous::Stop(const std::string& cause) {
  EpochActions actions = Abort(0, cause);
  stopped_ = cause.empty() ? "the job was stopped" : cause;
  return actions;
}

bool HostRendezvous::Unused(const Epoch& epoch) const {
  return std::all_of(epoch.stages.begin(), epoch.stages.end(), [&epoch](Stage stage) {
    return stage == Stage::kLeft || stage == Stage::kGone ||
           (stage == Stage::kOutside && !epoch.aborted.empty());
  });
}

void HostRendezvous::DisposeIfUnused(uint64_t number, EpochActions* actions) {
  const Epoch& epoch = epochs_[number];
  if (!Unused(epoch)) return;
  if (epoch.created) actions->push_back({Kind::kDispose, number});
  if (epoch.aborted.empty()) epochs_.erase(number);  // an aborted one still refuses latecomers
}

// Epochs that have refused, or held, every rank.
void HostRendezvous::ForgetRefusing() {
  uint64_t all_beyond = NewestOf(0);
  for (int rank = 1; rank < local_size_; ++rank) {
    all_beyond = std::min(all_beyond, NewestOf(rank));
  }
  for (auto each = epochs_.begin(); each != epochs_.end() && each->first < all_beyond;) {
    each = Unused(each->second) ? epochs_.erase(each) : std::next(each);
  }
}

}  // namespace hvd
