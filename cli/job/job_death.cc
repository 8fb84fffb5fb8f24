// JobState's part for ranks that die, or leave, while others wait for them: the other hosts are
// told at once. Who is to blame is judged later, from the ranks' whole ends (RankExited).
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/job/job_state.h"
#include "cli/report/verdict_text.h"

namespace hvd {
namespace {

bool Failed(const v1::MemberDied& died) { return died.signal() != 0 || died.exit_code() != 0; }

// As much of its end as is known before its output has ended.
v1::RankExited EndOf(const v1::MemberDied& died) {
  v1::RankExited end;
  end.set_rank(died.rank());
  end.set_exit_code(died.exit_code());
  end.set_signal(died.signal());
  end.set_core_dumped(died.core_dumped());
  end.set_out_of_memory(died.out_of_memory());
  end.set_joined(died.epoch() != 0);
  end.set_left(died.left());
  return end;
}

}  // namespace

// Its own host has aborted its epoch already.
void JobState::OnDied(int host, const v1::MemberDied& died) {
  if (died.rank() >= facts_.ranks.size() || stopping_ || died.spoken_for()) return;
  const RankFact& fact = facts_.ranks[died.rank()];
  if (fact.phase == RankFact::kExited || fact.phase == RankFact::kLost) return;
  const v1::RankExited end = EndOf(died);
  const std::string cause = Failed(died) ? died.cause() : SayExit(end);
  if (Failed(died) && !died.after_abort() && death_.empty()) {
    death_ = absl::StrCat(NameRank(facts_, died.rank()), " ", DescribeExit(end));
  }
  const std::string& first = died.aborted().empty() ? cause : died.aborted();
  const bool known = died.aborted().empty() && died.after_abort();
  if (end.joined() && !end.left() && !known) TellAborted(host, died.epoch(), first);
  NoteGone(static_cast<int>(died.rank()),
           Failed(died) ? cause : cause + "; it comes to no other hvd_init");
}

void JobState::NoteGone(int rank, const std::string& why) {
  if (gone_[rank].empty()) gone_[rank] = why;
  EndUnstartable(rank);
}

// A rank that has ended comes to no later epoch: whoever waits for it there in hvd_init is told.
// (On its own host hvdd says so.)
void JobState::EndUnstartable(int gone) {
  if (stopping_ || gone_[gone].empty()) return;
  for (const uint64_t epoch : epochs_.WaitingFor(gone)) Abort(gone_[gone], epoch);
}

// "rank 1 on host0 exited (code 0) without hvd's init"
std::string JobState::SayExit(const v1::RankExited& exit) const {
  absl::string_view when = " without hvd's shutdown";
  if (exit.left()) when = " after hvd's shutdown";
  if (!exit.joined()) when = " without hvd's init";
  return absl::StrCat(NameRank(facts_, static_cast<int>(exit.rank())), " exited (code 0)", when);
}

// Ranks abort an epoch themselves when one leaves while others wait for it, or cannot go on. Those
// that are inside a collective on other hosts hear of it only here.
void JobState::OnLeft(int host, const v1::RankLeft& left) {
  if (left.has_abort_rank()) NoteCause(left.abort_rank());
  if (!stopping_ && !left.aborted().empty()) TellAborted(host, left.epoch(), left.aborted());
}

// `host` knows; the first cause of an epoch's abort is the one that counts.
void JobState::TellAborted(int host, uint64_t epoch, const std::string& cause) {
  if (epoch <= told_aborted_) return;
  told_aborted_ = epoch;
  for (size_t other = 0; other < facts_.hosts.size(); ++other) {
    if (static_cast<int>(other) == host || facts_.hosts[other].phase == HostFact::kGone) continue;
    v1::Command command;
    command.mutable_epoch_abort()->set_epoch(epoch);
    command.mutable_epoch_abort()->set_cause(cause);
    Send(static_cast<int>(other), std::move(command));
  }
}

}  // namespace hvd
