// SPDX-License-Identifier: Apache-2.0
// Membership's part for ranks that others wait for in vain: those that hold up the next epoch, that
// never come to the first, or that the kernel holds.
#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/membership/epoch_words.h"
#include "cli/membership/membership.h"

namespace hvd {
namespace {

// A survivor that comes later than that, or a host, is named.
constexpr double kSayLateS = 5;

}  // namespace

// ---- the next epoch ----

void Membership::LookAtLate(double now) {
  if (current_.number == 0 || closed_ || !ended_well_.empty()) return;
  if (!current_.started && !current_.broke) {
    const double until = current_.proposed_at + options_.elastic_timeout_s;
    SayLate(current_.proposed_at, now);
    if (now < until) return WakeAt(until, now);
    Break(
        -1,
        {Cause::kEnd, absl::StrFormat("not all ranks began epoch %d within --elastic-timeout %g s",
                                      current_.number, options_.elastic_timeout_s)},
        now);
  }
  if (!current_.broke) return;
  const double until = current_.ended_at + options_.elastic_timeout_s;
  if (!AllQuiet() || !SurvivorsStand()) SayLate(current_.ended_at, now);
  for (const uint64_t member : current_.members) {
    if (!Of(member).alive || Of(member).retired || Of(member).stands) continue;
    if (now < until) {
      WakeAt(until, now);
      continue;
    }
    const std::string why =
        absl::StrFormat("it has not come back within --elastic-timeout %g s after its epoch ended",
                        options_.elastic_timeout_s);
    const auto rank = std::find(current_.members.begin(), current_.members.end(), member);
    Say(absl::StrCat("rank ", rank - current_.members.begin(), " on ", hosts_[Of(member).host].name,
                     " is ended and replaced: ", why));
    NoteFailure(absl::StrCat("a rank on ", hosts_[Of(member).host].name, ": ", why));
    Retire(member, false, why);
  }
}

// The ranks and hosts that hold up the next epoch, or the start of one that is proposed.
std::vector<std::string> Membership::WhoIsLate() const {
  std::vector<std::string> late;
  for (size_t rank = 0; current_.broke && rank < current_.members.size(); ++rank) {
    const Member& member = Of(current_.members[rank]);
    if (!member.alive || member.retired || member.stands) continue;
    late.push_back(absl::StrCat("rank ", rank, " on ", hosts_[member.host].name));
  }
  for (const int host : current_.hosts) {
    const bool waits = !current_.broke && current_.ready.count(host) == 0;
    if (waits) late.push_back(absl::StrCat("host ", hosts_[host].name));
  }
  return late;
}

void Membership::SayLate(double since, double now) {
  if (current_.late_told) return;
  WakeAt(since + kSayLateS, now);
  if (now < since + kSayLateS) return;
  const std::vector<std::string> late = WhoIsLate();
  if (late.empty()) return;
  current_.late_told = true;
  const std::string names = JoinCauses(late);
  const std::string what =
      current_.broke
          ? absl::StrFormat("has not come back in the %.0f s since its epoch ended", now - since)
          : absl::StrFormat("has not begun epoch %d in %.0f s", current_.number, now - since);
  Say(absl::StrFormat("%s %s; the others wait, up to --elastic-timeout %g s", names, what,
                      options_.elastic_timeout_s));
}

// ---- ranks that have not come at all ----

bool Membership::HasNotCome(const Member& member) const {
  return member.alive && !member.retired && !member.stands && member.epoch == 0;
}

// Nobody waits for a rank before another has come.
double Membership::AwaitedFrom(const Member& member) const {
  return std::max(member.born_at, first_stood_at_);
}

// How many the first epoch does not wait for any longer.
int Membership::CountOverdue(double now) {
  int overdue = 0;
  for (const uint64_t number : staying_) {
    if (first_stood_at_ < 0 || !HasNotCome(Of(number))) continue;
    const double until = AwaitedFrom(Of(number)) + options_.start_timeout_s;
    overdue += now >= until;
    WakeAt(until, now);
  }
  return overdue;
}

// "1 rank on host1 has not called hvd.init()"; empty: all have.
std::string Membership::SayUncome() const {
  std::map<int, int> by_host;
  for (const uint64_t number : staying_) {
    if (HasNotCome(Of(number))) ++by_host[Of(number).host];
  }
  std::vector<std::string> words;
  int all = 0;
  for (const auto& [host, ranks] : by_host) {
    words.push_back(
        absl::StrFormat("%d rank%s on %s", ranks, ranks == 1 ? "" : "s", hosts_[host].name));
    all += ranks;
  }
  if (words.empty()) return "";
  return absl::StrCat(absl::StrJoin(words, ", "), all == 1 ? " has" : " have",
                      " not called hvd.init()");
}

void Membership::SayBeginsWithout() {
  if (std::exchange(begins_without_, true)) return;
  Say(absl::StrFormat("%s within --start-timeout %g s: the first epoch begins without them",
                      SayUncome(), options_.start_timeout_s));
}

// While others work, or could, such a rank only takes up its share.
void Membership::LookAtUncome(double now) {
  if (closed_ || first_stood_at_ < 0 || !ended_well_.empty()) return;
  for (uint64_t number = 1; number <= members_.size() && !ended_; ++number) {
    const Member& member = Of(number);
    if (!HasNotCome(member)) continue;
    const double until = AwaitedFrom(member) + options_.elastic_timeout_s;
    WakeAt(until, now);
    if (now < until) continue;
    const std::string why =
        absl::StrFormat("a rank on %s has not called hvd.init() within --elastic-timeout %g s",
                        hosts_[member.host].name, options_.elastic_timeout_s);
    Say(absl::StrCat(why, ", and is replaced"));
    MemberEnd end;
    end.signal = SIGKILL;
    end.known = false;
    end.what = why;
    CountDeath(number, end, now);
    if (!ended_) Retire(number, false, why);
  }
}

// ---- ranks that the kernel holds ----

std::vector<Membership::Awaited> Membership::WhoIsAwaited() const {
  std::vector<Awaited> awaited;
  if (closed_ || current_.number == 0) return awaited;
  const bool joins =
      current_.announced && std::any_of(staying_.begin(), staying_.end(), [this](uint64_t number) {
        return !InCurrent(number) && Of(number).stands;
      });
  for (const uint64_t number : current_.members) {
    const Member& member = Of(number);
    if (!member.alive || member.retired || member.stands) continue;
    if (current_.broke) {
      awaited.push_back({number, current_.ended_at, "the next epoch"});
    } else if (!current_.started) {
      if (current_.ready.count(member.host) == 0)
        awaited.push_back({number, current_.proposed_at, "the start of the epoch"});
    } else if (joins) {
      awaited.push_back({number, current_.announced_at, "a rank that is to join"});
    }
  }
  return awaited;
}

// It counts as dead of somebody else's doing.
void Membership::Stalled(uint64_t member, const std::string& why, double now) {
  if (!Knows(member) || !Of(member).alive || Of(member).retired || closed_) return;
  current_.lost_any = true;
  Break(-1, {Cause::kEnd, why}, now);
  MemberEnd end;
  end.signal = SIGKILL;
  end.own = end.known = false;
  end.what = why;
  CountDeath(member, end, now);
  if (!ended_) Retire(member, false, why);
  Settle(now);
}

}  // namespace hvd
