// The part of LinkServer that finds out who waits for whom, while something is pending; an idle job
// is left alone. The ranks are asked through the host page what they have submitted; how they get
// on with it the page shows by itself, also of a rank that can say nothing.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/link_b/link_server.h"
#include "daemon/watch/process_state.h"

namespace hvd {
namespace {

// A rank that waits answers when it is rung; one that has no core needs a while.
constexpr auto kAnswerTime = std::chrono::milliseconds(50);
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

const EpochMemory* LinkServer::Watched() const {
  if (memories_.empty() || !memories_.rbegin()->second->aborted().cause.empty()) return nullptr;
  return memories_.rbegin()->second.get();
}

std::vector<RankProgress> LinkServer::Progress() {
  const EpochMemory* memory = Watched();
  return progress_.Take(memory == nullptr ? std::vector<RankProgress>() : memory->Progress(),
                        Clock::now());
}

void LinkServer::LookForStalls() {
  loop_.At(Clock::now() + stalls_.period(), [this] { LookForStalls(); });
  if (Watched() == nullptr || !Watched()->AnyUnderWay()) {
    stalls_.Take({}, Clock::now());
    progress_.Take({}, Clock::now());
    return;
  }
  Ask([this](const std::vector<RankPending>& answers) {
    const std::vector<WaitingTensor> waiting = stalls_.Take(answers, Clock::now());
    std::vector<double> waits_s = StillBySet(Progress());
    for (const WaitingTensor& tensor : waiting) waits_s.push_back(tensor.waited_s);
    if (!stalls_.Due(waits_s, Clock::now())) return;
    v1::Event event;
    event.mutable_stall_due()->set_waited_s(*std::max_element(waits_s.begin(), waits_s.end()));
    options_.on_event(std::move(event));
  });
}

void LinkServer::AskPending() {
  loop_.Post(
      [this] { Ask([this](const std::vector<RankPending>& answers) { TellPending(answers); }); });
}

void LinkServer::Ask(OnAnswers then) {
  if (Watched() == nullptr) return then({});
  const auto& [epoch, memory] = *memories_.rbegin();
  loop_.At(Clock::now() + kAnswerTime,
           [this, epoch = epoch, question = memory->Ask(), then = std::move(then)] {
             then(Answers(epoch, question));
           });
}

std::vector<RankPending> LinkServer::Answers(uint64_t epoch, uint32_t question) {
  std::vector<RankPending> answers;
  silent_.clear();
  const auto found = memories_.find(epoch);
  if (found == memories_.end()) return answers;
  const EpochMemory& memory = *found->second;
  for (int rank = 0; rank < options_.local_size; ++rank) {
    if (!memory.HasPending(rank)) continue;
    const size_t before = answers.size();
    for (int region = 0; region < kWatchedSets; ++region) {
      RankPending answer = {rank, {}};
      if (memory.Answer(rank, region, question, &answer.list)) answers.push_back(std::move(answer));
    }
    if (answers.size() == before) silent_.push_back(rank);
  }
  return answers;
}

void LinkServer::TellPending(const std::vector<RankPending>& answers) {
  v1::Event event;
  v1::HostPending& host = *event.mutable_host_pending();
  AddTensors(answers, &host);
  for (const RankPending& answer : answers) {
    if (answer.list.truncated) host.set_more(true);
    if (answer.list.joined) host.add_joined(options_.first_rank + answer.local_rank);
  }
  for (int rank = 0; rank < options_.local_size; ++rank) host.add_activities(DoingOf(rank));
  for (const int rank : silent_) host.add_silent(options_.first_rank + rank);
  AddWork(&host);
  AddMessages(&host);
  options_.on_event(std::move(event));
}

void LinkServer::AddTensors(const std::vector<RankPending>& answers, v1::HostPending* host) {
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
    for (const int rank : waiting.local_ranks) tensor.add_ranks(options_.first_rank + rank);
    for (const int64_t member : waiting.members) tensor.add_members(static_cast<uint32_t>(member));
  }
}

void LinkServer::AddWork(v1::HostPending* host) {
  for (const RankProgress& progress : Progress()) {
    v1::RankWork& work = *host->add_work();
    work.set_rank(options_.first_rank + progress.local_rank);
    work.set_set(progress.set);
    work.set_what(progress.what);
    work.set_still_s(progress.still_s);
    work.set_executes(progress.work != 0 && !progress.on_device);
    work.set_on_device(progress.on_device);
  }
  for (int rank = 0; rank < options_.local_size; ++rank) {
    if (StateOf(PidOf(rank)).stopped()) host->add_stopped(options_.first_rank + rank);
  }
}

void LinkServer::AddMessages(v1::HostPending* host) const {
  const EpochMemory* memory = Watched();
  if (memory == nullptr || options_.hosts.size() == 1) return;
  for (int rank = 0; rank < options_.local_size; ++rank) {
    for (const EpochMemory::SetMessages& in_set : memory->Messages(rank)) {
      for (const MessageCount& count : in_set.counts) {
        if (host->messages_size() == kMostMessages) return;
        v1::MessagesSeen& seen = *host->add_messages();
        seen.set_rank(options_.first_rank + rank);
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

// Of the process that speaks for it, else of what was started as it; -1: none.
int LinkServer::PidOf(int rank) const {
  const auto peer = peers_.find(ranks_[rank].peer);
  return peer != peers_.end() ? peer->second->pid() : ranks_[rank].pid;
}

std::string LinkServer::DoingOf(int rank) const {
  return absl::StrCat(HeldBy(StateOf(PidOf(rank))), ActivityOf(rank));
}

}  // namespace hvd
