// SPDX-License-Identifier: Apache-2.0
#include "daemon/watch/pending_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/processes/process_state.h"

namespace hvd::daemon {
namespace {

// A rank that waits answers when it is rung; one that has no core needs a while. hvdrun waits a
// second for a host.
constexpr auto kAnswerTime = std::chrono::milliseconds(50);
constexpr auto kPatience = std::chrono::milliseconds(400);
constexpr int kMostTold = 200;
constexpr int kMostMessages = 20000;  // some 400 KB; what is left out makes a cause less sure

const char* HeldBy(const ProcessState& state) {
  switch (state.letter) {
    case 'T':
      return "stopped by a signal (SIGSTOP?); ";
    case 't':
      return "held by a debugger; ";
    case 'D':
      return "inside the kernel, which waits for a file system or a device; ";
    default:
      return "";
  }
}

}  // namespace

PendingWatch::PendingWatch(Loop* loop, const HostEpochs* epochs, PendingWatchOptions options)
    : loop_(loop), epochs_(epochs), options_(std::move(options)), stalls_(options_.stall) {}

void PendingWatch::Begin() {
  if (options_.stall.warn_s > 0) LookForStalls();
}

void PendingWatch::Tell() {
  Ask([this](const PendingAnswers& answers) { TellPending(answers); });
}

// ---- what is watched ----

const EpochMemory* PendingWatch::Watched() const {
  const auto& memories = epochs_->memories().by_epoch();
  if (memories.empty() || !memories.rbegin()->second->aborted().cause.empty()) return nullptr;
  return memories.rbegin()->second.get();
}

// Returns the slots of the epoch that is watched, else of the newest proposal.
std::vector<int> PendingWatch::SlotsByLocalRank() const {
  if (Watched() != nullptr) return Watched()->slots();
  const EpochPlan* newest = nullptr;
  for (int slot = 0; slot < options_.slots; ++slot) {
    const EpochPlan* plan = epochs_->book().newest_plan(slot);
    if (plan != nullptr && (newest == nullptr || plan->epoch > newest->epoch)) newest = plan;
  }
  return newest == nullptr ? std::vector<int>() : newest->slots;
}

int PendingWatch::RankOf(int local_rank) const {
  return Watched() == nullptr ? local_rank : Watched()->rank_of(local_rank);
}

std::vector<RankProgress> PendingWatch::Progress() {
  const EpochMemory* memory = Watched();
  return progress_.Take(memory == nullptr ? std::vector<RankProgress>() : memory->Progress(),
                        Clock::now());
}

void PendingWatch::LookForStalls() {
  loop_->At(Clock::now() + stalls_.period(), [this] { LookForStalls(); });
  LookForHeld();
  if (Watched() == nullptr || !Watched()->AnyUnderWay()) {
    stalls_.Take({}, Clock::now());
    progress_.Take({}, Clock::now());
    return;
  }
  Ask([this](const PendingAnswers& answers) { TellIfDue(answers); });
}

void PendingWatch::TellIfDue(const PendingAnswers& answers) {
  const std::vector<WaitingTensor> waiting = stalls_.Take(answers, Clock::now());
  std::vector<double> waits_s = StillBySet(Progress());
  for (const WaitingTensor& tensor : waiting) waits_s.push_back(tensor.waited_s);
  if (!stalls_.Due(waits_s, Clock::now())) return;
  TellDue(*std::max_element(waits_s.begin(), waits_s.end()));
}

// Whether anybody waits for a rank that is held, hvdrun knows: it may be on another host, or wait
// for something else than a collective.
void PendingWatch::LookForHeld() {
  const StallPolicy& limits = options_.stall;
  const double every_s =
      limits.abort_s > 0 ? std::min(limits.warn_s, limits.abort_s) : limits.warn_s;
  const std::vector<HeldSlot> held = Held();
  if (!held_.Due(held, every_s, Clock::now())) return;
  double longest_s = 0;
  for (const HeldSlot& one : held) longest_s = std::max(longest_s, one.held_s);
  TellDue(longest_s);
}

std::vector<HeldSlot> PendingWatch::Held() {
  std::vector<int> slots;
  for (int slot = 0; slot < options_.slots; ++slot) {
    if (StateOf(options_.pid_of(slot)).stopped()) slots.push_back(slot);
  }
  return held_.Take(slots, Clock::now());
}

void PendingWatch::TellDue(double waited_s) {
  v1::Event event;
  event.mutable_stall_due()->set_waited_s(waited_s);
  options_.on_event(std::move(event));
}

// ---- the question ----

void PendingWatch::Ask(OnAnswers then) {
  if (Watched() == nullptr) return then({});
  const auto& [epoch, memory] = *epochs_->memories().by_epoch().rbegin();
  Await({epoch, memory->Ask(), Clock::now() + kPatience, std::move(then)});
}

void PendingWatch::Await(Question question) {
  loop_->At(Clock::now() + kAnswerTime, [this, question = std::move(question)]() mutable {
    const PendingAnswers answers = Answers(question);
    if (Clock::now() < question.patience && AnyMayAnswerYet(answers)) {
      return Await(std::move(question));
    }
    question.then(answers);
  });
}

// Ranks that the kernel holds do not answer.
bool PendingWatch::AnyMayAnswerYet(const PendingAnswers& answers) const {
  const EpochMemory* memory = Watched();
  return memory != nullptr && std::any_of(answers.late.begin(), answers.late.end(), [&](int rank) {
           return !StateOf(options_.pid_of(memory->slot_of(rank))).stopped();
         });
}

PendingAnswers PendingWatch::Answers(const Question& question) {
  PendingAnswers answers;
  silent_.clear();
  const auto found = epochs_->memories().by_epoch().find(question.epoch);
  if (found == epochs_->memories().by_epoch().end()) return answers;
  const EpochMemory& memory = *found->second;
  for (int rank = 0; rank < memory.local_size(); ++rank) {
    if (!memory.HasPending(rank)) continue;
    const size_t before = answers.given.size();
    bool late = false;
    for (int region = 0; region < kWatchedSets; ++region) {
      RankPending answer = {rank, {}};
      if (memory.Answer(rank, region, question.number, &answer.list)) {
        answers.given.push_back(std::move(answer));
      } else {
        late |= memory.HasPending(rank, region);
      }
    }
    if (late) answers.late.push_back(rank);
    if (answers.given.size() == before) silent_.push_back(rank);
  }
  return answers;
}

// ---- the answers ----

void PendingWatch::TellPending(const PendingAnswers& answers) {
  v1::Event event;
  v1::HostPending& host = *event.mutable_host_pending();
  AddTensors(answers, &host);
  for (const RankPending& answer : answers.given) {
    if (answer.list.truncated) host.set_more(true);
    if (answer.list.joined) host.add_joined(RankOf(answer.local_rank));
  }
  for (const int slot : SlotsByLocalRank()) host.add_activities(DoingOf(slot));
  for (const int rank : silent_) host.add_silent(RankOf(rank));
  AddWork(&host);
  AddHeld(&host);
  AddMessages(&host);
  options_.on_event(std::move(event));
}

void PendingWatch::AddTensors(const PendingAnswers& answers, v1::HostPending* host) {
  for (const WaitingTensor& waiting : stalls_.Take(answers, Clock::now())) {
    if (host->tensors_size() == kMostTold) {
      host->set_more(true);
      break;
    }
    v1::WaitingTensor& tensor = *host->add_tensors();
    tensor.set_set(waiting.set);
    tensor.set_name(waiting.name);
    tensor.set_what(waiting.what);
    tensor.set_waited_s(waiting.waited_s);
    tensor.set_moving(waiting.moving);
    for (const int rank : waiting.local_ranks) tensor.add_ranks(RankOf(rank));
    for (const int64_t member : waiting.members) tensor.add_members(static_cast<uint32_t>(member));
  }
}

void PendingWatch::AddWork(v1::HostPending* host) {
  for (const RankProgress& progress : Progress()) {
    v1::RankWork& work = *host->add_work();
    work.set_rank(RankOf(progress.local_rank));
    work.set_set(progress.set);
    work.set_what(progress.what);
    work.set_still_s(progress.still_s);
    work.set_executes(progress.work != 0 && !progress.on_device);
    work.set_on_device(progress.on_device);
  }
}

void PendingWatch::AddHeld(v1::HostPending* host) {
  const std::vector<int> watched = Watched() == nullptr ? std::vector<int>() : Watched()->slots();
  for (const HeldSlot& one : Held()) {
    v1::HeldRank& held = *host->add_held();
    held.set_slot(one.slot);
    held.set_held_s(one.held_s);
    const auto rank = std::find(watched.begin(), watched.end(), one.slot);
    if (rank != watched.end()) held.set_rank(RankOf(static_cast<int>(rank - watched.begin())));
  }
}

void PendingWatch::AddMessages(v1::HostPending* host) const {
  const EpochMemory* memory = Watched();
  if (memory == nullptr || !memory->several_hosts()) return;
  for (int rank = 0; rank < memory->local_size(); ++rank) {
    for (const EpochMemory::SetMessages& in_set : memory->Messages(rank)) {
      for (const MessageCount& count : in_set.counts) {
        if (host->messages_size() == kMostMessages) return;
        v1::MessagesSeen& seen = *host->add_messages();
        seen.set_rank(memory->rank_of(rank));
        seen.set_peer(count.peer);
        seen.set_set(in_set.set);
        seen.set_channel(count.channel);
        seen.set_step(count.step);
        seen.set_sent(count.sent);
        seen.set_asked(count.asked);
        seen.set_came(count.came);
      }
    }
  }
}

std::string PendingWatch::DoingOf(int slot) const {
  return absl::StrCat(HeldBy(StateOf(options_.pid_of(slot))), epochs_->members().ActivityOf(slot));
}

}  // namespace hvd::daemon
