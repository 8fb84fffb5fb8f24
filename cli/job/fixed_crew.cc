// SPDX-License-Identifier: Apache-2.0
#include "cli/job/fixed_crew.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/report/verdict_text.h"

namespace hvd::cli {
namespace {

bool Failed(const v1::MemberDied& died) { return died.signal() != 0 || died.exit_code() != 0; }

}  // namespace

void FixedCrew::HostGreeted(int /*host*/, double /*now*/) {
  const auto& hosts = parts_.book->facts.hosts;
  const bool all = std::all_of(hosts.begin(), hosts.end(), [](const HostFact& fact) {
    return fact.phase == HostFact::kGreeted;
  });
  if (all && !parts_.stop->begun()) Launch();
}

// One after the other without an answer in between: a daemon takes them in this order.
void FixedCrew::Launch() {
  JobBook& book = *parts_.book;
  parts_.roll->LaunchSent();
  book.outbox.Prepare();
  parts_.epochs->Propose();
  const auto takes_stdin = [&book](int rank) {
    return book.policy.stdin_rank == -2 || book.policy.stdin_rank == rank;
  };
  for (int host = 0; host < static_cast<int>(book.facts.hosts.size()); ++host) {
    v1::Command command;
    *command.mutable_spawn_slots() = parts_.epochs->members().Seats(host, takes_stdin);
    book.outbox.Send(host, std::move(command));
  }
}

void FixedCrew::Joined(int rank, uint64_t epoch, double now) {
  parts_.epochs->Joined(rank, epoch, now);
}

void FixedCrew::Stands(const v1::MemberStands& stands, double /*now*/) {
  parts_.epochs->Stands(stands);
}

// Its own host has aborted its epoch already.
void FixedCrew::Died(int rank, const v1::MemberDied& died, double /*now*/) {
  const JobFacts& facts = parts_.book->facts;
  const v1::RankExited end = ExitOf(died);
  const std::string cause = Failed(died) ? died.cause() : SayCleanExit(facts, rank, end);
  if (Failed(died) && !died.after_abort()) {
    parts_.stop->NoteDeath(absl::StrCat(NameRank(facts, rank), " ", DescribeExit(end)));
  }
  const std::string& first = died.aborted().empty() ? cause : died.aborted();
  const bool known = died.aborted().empty() && died.after_abort();
  const bool tells = end.joined() && !end.left() && !known;
  if (tells) parts_.epochs->TellAborted(facts.ranks[rank].host, died.epoch(), first);
  parts_.epochs->Gone(rank, Failed(died) ? cause : cause + "; it comes to no other hvd_init");
}

void FixedCrew::EndedWell(int rank) {
  const JobFacts& facts = parts_.book->facts;
  parts_.epochs->Gone(
      rank, SayCleanExit(facts, rank, facts.ranks[rank].exit) + "; it comes to no other hvd_init");
}

void FixedCrew::Left(int host, const v1::RankLeft& left, const std::string& /*cause*/,
                     double /*now*/) {
  parts_.epochs->TellAborted(host, left.epoch(), left.aborted());
}

void FixedCrew::Addresses(int host, const v1::HostAddresses& addresses) {
  parts_.epochs->Collect(host, addresses);
}

// The next epoch is proposed behind the start of this one, which waits for nothing then.
void FixedCrew::Ready(int host, uint64_t epoch, double /*now*/) {
  if (!parts_.epochs->Ready(host, epoch)) return;
  if (epoch >= parts_.epochs->members().proposed()) parts_.epochs->Propose();
}

}  // namespace hvd::cli
