// The part of LinkServer that finds out who waits for whom. The ranks are asked through the host
// page while something is pending; an idle job is left alone.
#include <utility>

#include "daemon/link_b/link_server.h"

namespace hvd {
namespace {

// A rank that waits answers when it is rung; one that has no core needs a while.
constexpr auto kAnswerTime = std::chrono::milliseconds(50);
constexpr size_t kMostTold = 200;

}  // namespace

void LinkServer::LookForStalls() {
  loop_.At(Clock::now() + stalls_.period(), [this] { LookForStalls(); });
  if (memories_.empty() || !memories_.rbegin()->second->AnyPending()) {
    stalls_.Take({}, Clock::now());
    return;
  }
  Ask([this](const std::vector<RankPending>& answers) {
    const std::vector<WaitingTensor> waiting = stalls_.Take(answers, Clock::now());
    if (!stalls_.Due(waiting)) return;
    v1::Event event;
    event.mutable_stall_due()->set_waited_s(waiting[0].waited_s);
    options_.on_event(std::move(event));
  });
}

void LinkServer::AskPending() {
  loop_.Post(
      [this] { Ask([this](const std::vector<RankPending>& answers) { TellPending(answers); }); });
}

void LinkServer::Ask(OnAnswers then) {
  if (memories_.empty()) return then({});
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
  for (const WaitingTensor& waiting : stalls_.Take(answers, Clock::now())) {
    if (host.tensors_size() == kMostTold) {
      host.set_more(true);
      break;
    }
    v1::WaitingTensor& tensor = *host.add_tensors();
    tensor.set_set(waiting.set);
    tensor.set_name(waiting.name);
    tensor.set_what(waiting.what);
    tensor.set_waited_s(waiting.waited_s);
    for (const int rank : waiting.local_ranks) tensor.add_ranks(options_.first_rank + rank);
    for (const RankPending& answer : answers) {
      if (answer.list.set != waiting.set || tensor.members_size() != 0) continue;
      for (const int64_t member : answer.list.members) tensor.add_members(member);
    }
  }
  for (const RankPending& answer : answers) {
    if (answer.list.truncated) host.set_more(true);
    if (answer.list.joined) host.add_joined(options_.first_rank + answer.local_rank);
  }
  for (int rank = 0; rank < options_.local_size; ++rank) host.add_activities(ActivityOf(rank));
  for (const int rank : silent_) host.add_silent(options_.first_rank + rank);
  options_.on_event(std::move(event));
}

}  // namespace hvd
