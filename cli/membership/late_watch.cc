// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/late_watch.h"

#include <signal.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/membership/epoch_words.h"

namespace hvd::cli {
namespace {

// A survivor that comes later than that, or a host, is named.
constexpr double kSayLateS = 5;

}  // namespace

void LateWatch::Look(double now) {
  if (!parts_.roster->ended_well().empty()) return;
  if (parts_.epochs->current().number != 0) {
    LookAtStart(now);
    LookAtBroken(now);
  }
  LookAtUncome(now);
}

// ---- the next epoch ----

void LateWatch::LookAtStart(double now) {
  const CurrentEpoch& epoch = parts_.epochs->current();
  if (epoch.started || epoch.broke) return;
  const double timeout_s = parts_.options->elastic_timeout_s;
  const double until = epoch.proposed_at + timeout_s;
  SayLate(epoch.proposed_at, now);
  if (now < until) return parts_.wants->WakeAt(until, now);
  parts_.epochs->Break(
      -1,
      {Cause::kEnd, absl::StrFormat("not all ranks began epoch %d within --elastic-timeout %g s",
                                    epoch.number, timeout_s)},
      now);
}

void LateWatch::LookAtBroken(double now) {
  const CurrentEpoch& epoch = parts_.epochs->current();
  if (!epoch.broke) return;
  const double until = epoch.ended_at + parts_.options->elastic_timeout_s;
  if (!parts_.epochs->AllQuiet() || !parts_.staying->SurvivorsStand()) {
    SayLate(epoch.ended_at, now);
  }
  for (const uint64_t member : epoch.members) {
    if (!IsAwaited(parts_.roster->Of(member))) continue;
    if (now < until) {
      parts_.wants->WakeAt(until, now);
    } else {
      Replace(member);
    }
  }
}

bool LateWatch::IsAwaited(const RosterMember& member) const {
  return member.alive && !member.retired && !member.stands;
}

void LateWatch::Replace(uint64_t member) {
  const std::string why =
      absl::StrFormat("it has not come back within --elastic-timeout %g s after its epoch ended",
                      parts_.options->elastic_timeout_s);
  const auto& members = parts_.epochs->current().members;
  const auto rank = std::find(members.begin(), members.end(), member);
  const std::string& host = parts_.roster->HostOf(member).name;
  parts_.wants->Say(
      absl::StrCat("rank ", rank - members.begin(), " on ", host, " is ended and replaced: ", why));
  parts_.wants->NoteFailure(absl::StrCat("a rank on ", host, ": ", why));
  parts_.staying->Retire(member, false, why);
}

// The ranks and hosts that hold up the next epoch, or the start of one that is proposed.
std::vector<std::string> LateWatch::WhoIsLate() const {
  const CurrentEpoch& epoch = parts_.epochs->current();
  std::vector<std::string> late;
  for (size_t rank = 0; epoch.broke && rank < epoch.members.size(); ++rank) {
    if (!IsAwaited(parts_.roster->Of(epoch.members[rank]))) continue;
    const std::string& host = parts_.roster->HostOf(epoch.members[rank]).name;
    late.push_back(absl::StrCat("rank ", rank, " on ", host));
  }
  for (const int host : epoch.hosts) {
    const bool waits = !epoch.broke && epoch.ready.count(host) == 0;
    if (waits) late.push_back(absl::StrCat("host ", parts_.roster->host(host).name));
  }
  return late;
}

void LateWatch::SayLate(double since, double now) {
  CurrentEpoch& epoch = parts_.epochs->current();
  if (epoch.late_told) return;
  parts_.wants->WakeAt(since + kSayLateS, now);
  if (now < since + kSayLateS) return;
  const std::vector<std::string> late = WhoIsLate();
  if (late.empty()) return;
  epoch.late_told = true;
  const std::string names = JoinCauses(late);
  const std::string what =
      epoch.broke
          ? absl::StrFormat("has not come back in the %.0f s since its epoch ended", now - since)
          : absl::StrFormat("has not begun epoch %d in %.0f s", epoch.number, now - since);
  parts_.wants->Say(absl::StrFormat("%s %s; the others wait, up to --elastic-timeout %g s", names,
                                    what, parts_.options->elastic_timeout_s));
}

// ---- ranks that have not come at all ----

// Nobody waits for a rank before another has come.
double LateWatch::AwaitedFrom(const RosterMember& member) const {
  return std::max(member.born_at, first_stood_at_);
}

int LateWatch::CountOverdue(double now) {
  int overdue = 0;
  for (const uint64_t number : parts_.staying->members()) {
    const RosterMember& member = parts_.roster->Of(number);
    if (!any_stood() || !member.HasNotCome()) continue;
    const double until = AwaitedFrom(member) + parts_.options->start_timeout_s;
    overdue += now >= until;
    parts_.wants->WakeAt(until, now);
  }
  return overdue;
}

std::string LateWatch::SayUncome() const {
  std::map<int, int> by_host;
  for (const uint64_t number : parts_.staying->members()) {
    const RosterMember& member = parts_.roster->Of(number);
    if (member.HasNotCome()) ++by_host[member.host];
  }
  std::vector<std::string> words;
  int all = 0;
  for (const auto& [host, ranks] : by_host) {
    words.push_back(absl::StrFormat("%d rank%s on %s", ranks, ranks == 1 ? "" : "s",
                                    parts_.roster->host(host).name));
    all += ranks;
  }
  if (words.empty()) return "";
  return absl::StrCat(absl::StrJoin(words, ", "), all == 1 ? " has" : " have",
                      " not called hvd.init()");
}

void LateWatch::SayBeginsWithout() {
  if (std::exchange(begins_without_, true)) return;
  parts_.wants->Say(
      absl::StrFormat("%s within --start-timeout %g s: the first epoch begins without them",
                      SayUncome(), parts_.options->start_timeout_s));
}

// While others work, or could, such a rank only takes up its share.
void LateWatch::LookAtUncome(double now) {
  if (!any_stood()) return;
  const uint64_t newest = parts_.roster->newest();
  for (uint64_t number = 1; number <= newest && !parts_.wants->ended(); ++number) {
    const RosterMember& member = parts_.roster->Of(number);
    if (!member.HasNotCome()) continue;
    const double until = AwaitedFrom(member) + parts_.options->elastic_timeout_s;
    parts_.wants->WakeAt(until, now);
    if (now >= until) ReplaceUncome(number, now);
  }
}

void LateWatch::ReplaceUncome(uint64_t member, double now) {
  MemberEnd end;
  end.signal = SIGKILL;
  end.known = false;
  end.what = absl::StrFormat("a rank on %s has not called hvd.init() within --elastic-timeout %g s",
                             parts_.roster->HostOf(member).name, parts_.options->elastic_timeout_s);
  parts_.wants->Say(absl::StrCat(end.what, ", and is replaced"));
  parts_.deaths->Count(member, end, now);
  if (!parts_.wants->ended()) parts_.staying->Retire(member, false, end.what);
}

// ---- ranks that the kernel may hold ----

std::vector<AwaitedMember> LateWatch::WhoIsAwaited() const {
  std::vector<AwaitedMember> awaited;
  const CurrentEpoch& epoch = parts_.epochs->current();
  const auto& staying = parts_.staying->members();
  const bool joins =
      epoch.announced && std::any_of(staying.begin(), staying.end(), [this](uint64_t number) {
        return !parts_.epochs->Has(number) && parts_.roster->Of(number).stands;
      });
  for (const uint64_t number : epoch.members) {
    const RosterMember& member = parts_.roster->Of(number);
    if (!IsAwaited(member)) continue;
    if (epoch.broke) {
      awaited.push_back({number, epoch.ended_at, "the next epoch"});
    } else if (!epoch.started) {
      if (epoch.ready.count(member.host) == 0)
        awaited.push_back({number, epoch.proposed_at, "the start of the epoch"});
    } else if (joins) {
      awaited.push_back({number, epoch.announced_at, "a rank that is to join"});
    }
  }
  return awaited;
}

}  // namespace hvd::cli
