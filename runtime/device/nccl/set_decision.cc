// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/nccl/set_decision.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvd::rt {
namespace {

// The message of the set's first rank: the communicator's id, or that there is none.
struct ToldId {
  NcclId id = {};
  int32_t made = 0;
};

std::vector<int> RanksInJob(const EpochWorld& world) {
  std::vector<int> ranks;
  ranks.reserve(static_cast<size_t>(world.topology().size()));
  for (int rank = 0; rank < world.topology().size(); ++rank)
    ranks.push_back(world.GlobalRank(rank));
  return ranks;
}

}  // namespace

SetDecision::SetDecision(SetDecisionParts parts) : parts_(std::move(parts)) {
  if (parts_.operations == GpuOperations::kHost) way_ = Way::kHost;
}

SetDecision::~SetDecision() {
  if (counted_) --parts_.process->unordered_sets();
}

SetDecision::Way SetDecision::CloseForJoin() {
  const MutexLock lock(&mutex_);
  if (way() == Way::kOpen && !voted_) {
    joins_ = true;
    return Way::kHost;  // what it will be
  }
  return way();
}

SetVote SetDecision::Vote(const Request* first) {
  SetVote vote;
  vote.host = parts_.world->HostInJob();
  vote.in_several = parts_.sets() > 1 ? 1 : 0;
  vote.has_unordered = parts_.process->unordered_sets() > 0 ? 1 : 0;
  {
    const MutexLock lock(&mutex_);
    voted_ = true;
    vote.has_joined = joins_ || first == nullptr ? 1 : 0;
  }
  if (vote.has_joined == 0) Examine(*first, &vote);
  return vote;
}

// Fills in the vote's part on this rank's GPU, and on its NCCL.
void SetDecision::Examine(const Request& first, SetVote* vote) {
  const auto device = parts_.gpus->Find(first.buffers.device.id);
  if (!device.ok()) return vote->SetWhyNot(device.status().message());
  device_ = *device;
  const auto uuid = device_->Uuid();
  if (!uuid.ok()) return vote->SetWhyNot(uuid.status().message());
  std::memcpy(vote->gpu.data(), uuid->bytes, vote->gpu.size());
  vote->shares = parts_.process->may_share_gpus() ? 1 : 0;
  const auto library = parts_.process->library();
  if (!library.ok()) return vote->SetWhyNot(library.status().message());
  vote->nccl_version = (*library)->version();
}

absl::StatusOr<std::vector<SetVote>> SetDecision::Exchange(const SetVote& mine) {
  Collectives& collectives = parts_.world->collectives();
  std::vector<SetVote> votes(static_cast<size_t>(collectives.size()));
  const std::vector<size_t> bytes(votes.size(), sizeof(SetVote));
  absl::Status told = collectives.Allgather({&mine, votes.data(), bytes});
  if (!told.ok()) return told;
  return votes;
}

absl::Status SetDecision::Decide(const Request* first) {
  const auto votes = Exchange(Vote(first));
  if (!votes.ok()) return votes.status();
  SetWay decided = DecideWay(parts_.operations, *votes, RanksInJob(*parts_.world));
  ordered_ = decided.ordered;
  if (decided.kind == SetWay::Kind::kNccl) {
    if (absl::Status met = Meet(); !met.ok()) return met;
    counted_ = !ordered_;
    if (counted_) ++parts_.process->unordered_sets();
  }
  if (parts_.world->rank() == 0) Say(decided);
  why_ = std::move(decided.why);
  const Way way = decided.kind == SetWay::Kind::kNccl   ? Way::kNccl
                  : decided.kind == SetWay::Kind::kHost ? Way::kHost
                                                        : Way::kRefused;
  way_.store(way, std::memory_order_release);
  return absl::OkStatus();
}

absl::Status SetDecision::Meet() {
  const auto library = parts_.process->library();
  if (!library.ok()) return library.status();
  Collectives& collectives = parts_.world->collectives();
  ToldId told;
  absl::Status made;
  if (collectives.rank() == 0) {
    const auto id = Communicator::MakeId(**library);
    made = id.status();
    if (id.ok()) told = {*id, 1};
  }
  absl::Status heard = collectives.Broadcast({&told, &told, sizeof(told), 0});
  if (!made.ok()) return made;
  if (!heard.ok()) return heard;
  if (told.made == 0)
    return absl::FailedPreconditionError("the first rank has made no id for NCCL");
  place_ = {collectives.size(), collectives.rank(), told.id};
  const GpuDevice::Scope scope(*device_);
  auto begun = Communicator::Start(*library, place_);
  if (!begun.ok()) return begun.status();
  communicator_ = *std::move(begun);
  return absl::OkStatus();
}

void SetDecision::Say(const SetWay& way) const {
  const int set = parts_.world->watch().set;
  if (way.kind == SetWay::Kind::kNccl && parts_.says_way) {
    const auto library = parts_.process->library();
    fprintf(stderr, "hvd: GPU tensors of process set %d go by NCCL %s%s\n", set,
            NcclVersionText((*library)->version()).c_str(),
            way.ordered ? ", in one order with those of other sets" : "");
  }
  if (way.kind == SetWay::Kind::kHost && parts_.says_fallback) {
    fprintf(stderr, "hvd: GPU tensors of process set %d go by way of the host: %s\n", set,
            way.why.c_str());
  }
}

}  // namespace hvd::rt
