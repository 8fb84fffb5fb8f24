// SPDX-License-Identifier: Apache-2.0
#include "cli/job/job_epochs.h"

#include <utility>

namespace hvd::cli {

JobEpochs::JobEpochs(const JobFacts* facts, Outbox* outbox)
    : facts_(facts),
      outbox_(outbox),
      members_(facts->topology),
      rendezvous_(&facts->topology),
      gone_(facts->ranks.size()) {}

void JobEpochs::Propose() {
  v1::Command command;
  *command.mutable_epoch_propose() = members_.Propose();
  outbox_->Send(kAllHosts, std::move(command));
}

void JobEpochs::Adopt(const v1::EpochPropose& propose) {
  members_.Adopt(propose);
  v1::Command command;
  *command.mutable_epoch_propose() = propose;
  SendToEpoch(command);
}

void JobEpochs::SendToEpoch(const v1::Command& command, int but) {
  if (members_.all_are_in()) return outbox_->Send(kAllHosts, command);
  for (const int host : members_.hosts()) {
    if (host != but && facts_->hosts[host].phase != HostFact::kGone) outbox_->Send(host, command);
  }
}

void JobEpochs::Stands(const v1::MemberStands& stands) {
  if (stands.after_epoch() >= members_.proposed()) Propose();
}

void JobEpochs::Joined(int rank, uint64_t epoch, double now) {
  rendezvous_.Joined(rank, epoch, now);
  for (int other = 0; other < facts_->topology.size(); ++other) EndUnstartable(other);
}

void JobEpochs::Withdrawn(const v1::MemberWithdrew& withdrew) {
  const int rank = members_.RankOf(withdrew.member());
  if (rank >= 0) rendezvous_.Withdrawn(rank, withdrew.epoch());
}

void JobEpochs::Collect(int host, const v1::HostAddresses& addresses) {
  auto table = rendezvous_.Collect(host, addresses);
  if (!table.has_value()) return;
  v1::Command command;
  *command.mutable_epoch_table() = *std::move(table);
  SendToEpoch(command);
}

bool JobEpochs::Ready(int host, uint64_t epoch) {
  if (!rendezvous_.Ready(host, epoch)) return false;
  v1::Command go;
  go.mutable_epoch_go()->set_epoch(epoch);
  SendToEpoch(go);
  return true;
}

std::vector<int> JobEpochs::RunningPlaces() const {
  std::vector<int> running;
  for (int host = 0; host < static_cast<int>(facts_->hosts.size()); ++host) {
    const int place = members_.PlaceOf(host);
    if (facts_->hosts[host].phase == HostFact::kLaunched && place >= 0) running.push_back(place);
  }
  return running;
}

void JobEpochs::TellAborted(int host, uint64_t epoch, const std::string& cause) {
  if (epoch <= told_aborted_) return;
  told_aborted_ = epoch;
  for (int other = 0; other < static_cast<int>(facts_->hosts.size()); ++other) {
    if (other == host || facts_->hosts[other].phase == HostFact::kGone) continue;
    outbox_->Abort(other, epoch, cause);
  }
}

void JobEpochs::Gone(int rank, const std::string& why) {
  if (gone_[rank].empty()) gone_[rank] = why;
  EndUnstartable(rank);
}

void JobEpochs::EndUnstartable(int gone) {
  if (gone_[gone].empty()) return;
  for (const uint64_t epoch : rendezvous_.WaitingFor(gone)) {
    outbox_->Abort(kAllHosts, epoch, gone_[gone]);
  }
}

}  // namespace hvd::cli
