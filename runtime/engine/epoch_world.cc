// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/epoch_world.h"

#include <algorithm>
#include <chrono>

#include "runtime/engine/library_term.h"
#include "runtime/engine/set_transport.h"
#include "runtime/engine/world/meet_others.h"
#include "runtime/transport/usable_cores.h"

namespace hvd::rt {
namespace {

constexpr uint16_t kCollectiveChannel = kAgreementChannel + 1;
constexpr uint16_t kPairChannel = kCollectiveChannel + 1;
constexpr int kChannelsPerSet = 3;

// How long a member's death takes to be told; a host that is lost takes the lease.
constexpr std::chrono::seconds kMostUntilTold{5};

// A connection that fails because the peer has died, and the like.
bool MayBeAnothers(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsUnavailable(status) || absl::IsInternal(status) ||
         absl::IsUnknown(status);
}

// The set's ranks, by host; and the index of `rank` among them.
std::pair<Topology, int> SetTopology(const Topology& job, absl::Span<const int> ranks, int rank) {
  std::vector<std::string> names;
  names.reserve(job.hosts().size());
  for (const HostShape& host : job.hosts()) names.push_back(host.name);
  std::vector<int> host_of_rank;
  host_of_rank.reserve(ranks.size());
  for (const int member : ranks) host_of_rank.push_back(job.place(member).host);
  const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank);
  return {Topology::Numbered(names, host_of_rank), static_cast<int>(at - ranks.begin())};
}

}  // namespace

EpochWorld::~EpochWorld() = default;

absl::StatusOr<std::unique_ptr<EpochWorld>> EpochWorld::Join(Session* session,
                                                             const JoinOptions& options) {
  auto grant = session->Join(SetMemory::FirstBytes);
  if (!grant.ok()) return grant.status();
  std::unique_ptr<EpochWorld> world(new EpochWorld(grant->topology, grant->rank));
  world->grant_ = std::move(*grant);
  if (world->place().local_size > kMaxLocalRanks) {
    return absl::InvalidArgumentError("more than " + std::to_string(kMaxLocalRanks) +
                                      " ranks on one host");
  }
  if (options.on_start != nullptr) {
    absl::Status fine = options.on_start(world->topology(), world->rank());
    if (!fine.ok()) {
      (void)session->Withdraw(world->grant_).ok();  // a link that is broken shows at the next word
      return fine;
    }
  }
  absl::Status met = world->Meet(session, options);
  // However the end of the epoch was met first, the link is good for the next.
  if (MayBeAnothers(met) && session->is_elastic() && !session->refused()) {
    const absl::Status ended =
        session->AwaitEnd(world->grant_, std::chrono::steady_clock::now() + kMostUntilTold);
    if (absl::IsAborted(ended)) met = ended;
  }
  if (!met.ok()) return met;
  return world;
}

absl::StatusOr<std::unique_ptr<EpochWorld>> EpochWorld::Alone(const JoinOptions& options) {
  std::unique_ptr<EpochWorld> world(new EpochWorld(Topology({{"localhost", 1}}), 0));
  auto memory = HostMemory::Alone(SetMemory::FirstBytes(world->topology(), 0));
  if (!memory.ok()) return memory.status();
  world->grant_.epoch = 1;
  world->grant_.memory = std::move(*memory);
  if (absl::Status met = world->Meet(nullptr, options); !met.ok()) return met;
  return world;
}

absl::Status EpochWorld::Meet(Session* session, const JoinOptions& options) {
  memory_.Begin(grant_.memory->after_page());
  max_pending_ = options.max_pending;
  const int cores = UsableCores(options.host_cores);
  waiter_ = std::make_unique<Waiter>(page(), place().local_rank, event_fds(),
                                     WaitPolicy::For(place().local_size, cores));
  if (session != nullptr) {
    JoinOptions with_terms = options;
    with_terms.terms.insert(with_terms.terms.begin(), LibraryTerm());
    auto arenas = MeetOthers({session, &grant_, this, waiter_.get()}, with_terms, &transport_);
    if (!arenas.ok()) return arenas.status();
    arenas_ = *std::move(arenas);
  }
  BuildAgreement();
  return BuildCollectives();
}

absl::StatusOr<std::unique_ptr<EpochWorld>> EpochWorld::ForSet(EpochWorld* job, SetPlace place) {
  auto [topology, index] = SetTopology(job->topology(), place.global_ranks, job->rank());
  std::unique_ptr<EpochWorld> world(
      new EpochWorld(std::move(topology), index, job, std::move(place)));
  const RankPlace& in_job = job->place();
  world->waiter_ = std::make_unique<Waiter>(job->page(), in_job.local_rank, job->event_fds(),
                                            job->waiter().policy());
  if (world->topology().hosts().size() > 1) {
    const SetPlace& set = world->set();
    const int channels = set.channels != 0 ? set.channels : set.region;
    world->waiter_->set_transport(job->transport());
    world->transport_ = std::make_unique<SetTransport>(
        job->transport(), set.global_ranks, static_cast<uint16_t>(kChannelsPerSet * channels));
  }
  // All members have agreed on the set, and wait in it for one that cannot come.
  if (absl::Status mapped = world->memory_.Map(job->grant_.memory.get()); !mapped.ok()) {
    const std::string text = "rank " + std::to_string(job->rank()) + " cannot enter process set " +
                             std::to_string(world->set().id) + ": " + std::string(mapped.message());
    return job->board().Abort({text.c_str(), job->rank()});
  }
  world->BuildAgreement();
  if (absl::Status built = world->BuildCollectives(); !built.ok()) return built;
  return world;
}

absl::StatusOr<uint64_t> EpochWorld::TakeMemoryForSet(absl::Span<const int> global_ranks) {
  auto [topology, index] = SetTopology(this->topology(), global_ranks, rank());
  const SetSeat seat(std::move(topology), index);
  return grant_.memory->Take(SetMemory(&seat).bytes());
}

void EpochWorld::GiveMemoryBack() {
  if (job_ == nullptr || place().local_rank != 0) return;
  board_->GiveGrown();
  memory_.GiveBack(job_->grant_.memory.get());
}

PairLinks EpochWorld::pair_links() const {
  return {this, {job().grant_.memory.get(), memory_.pairs(), transport_.get(), kPairChannel}};
}

void EpochWorld::BuildAgreement() {
  const WatchPlace seen = watch();
  if (transport_ != nullptr) {
    MessageCounts& counts = WatchOf(seen.page, seen.local_rank).messages[seen.region];
    counts.Clear();  // another set's
    transport_->set_notes({&counts, &members()});
  }
  BoardPlace board;
  board.page = page();
  board.event_fds = event_fds();
  board.memory = memory_.board();
  board.local_rank = place().local_rank;
  board.local_size = place().local_size;
  board.ranks_here = topology().ranks_of(place().host);
  board.world_size = topology().size();
  board.several_hosts = topology().hosts().size() > 1;
  board.host = place().host;
  board.space = job().grant_.memory.get();
  board.most_pending = job().max_pending_;
  board.set = set().id;
  if (!members().empty()) board.global_ranks = members().data();
  if (!board.several_hosts) {
    direct_ = std::make_unique<Direct>(
        DirectPlace{page(), memory_.direct(), place().local_rank, place().local_size});
    board.bind = [direct = direct_.get()](std::string_view name) {
      return direct->numbers().Bind(name);
    };
  }
  board_ = std::make_unique<Board>(board);
  if (board.several_hosts && place().local_rank == 0) {
    leader_ = std::make_unique<Leader>(LeaderParts{.topology = &topology(),
                                                   .host = place().host,
                                                   .board = board_.get(),
                                                   .transport = transport_.get(),
                                                   .generation = static_cast<uint64_t>(set().id)});
  }
}

// Ranks wait for one another in it, so hvdd must see who is in it.
absl::Status EpochWorld::BuildCollectives() {
  RankActivity& mine = ActivityAt(watch());
  mine.set.store(set().id, std::memory_order_relaxed);
  mine.pending.store(1, std::memory_order_relaxed);
  mine.callers.store(1, std::memory_order_relaxed);
  BeginWork(&mine.work, mine.calls.load() + 1,
            job_ == nullptr ? "hvd_init" : "hvd_add_process_set");
  waiter_->set_moves(&mine.moves);
  absl::Status made = collectives_.Meet({.waiter = waiter_.get(),
                                         .transport = transport_.get(),
                                         .region = memory_.collectives(),
                                         .seat = this,
                                         .channel = kCollectiveChannel});
  if (!made.ok()) return made;
  EndWork(&mine.work);
  mine.pending.store(0, std::memory_order_relaxed);
  mine.callers.store(0, std::memory_order_relaxed);
  return made;
}

void EpochWorld::LetGo() {
  constexpr std::chrono::milliseconds kMost{200};  // the job's executor looks within microseconds
  EpochWorld& whole = job_ == nullptr ? *this : *job_;
  if (whole.transport_ == nullptr) return;
  if (job_ == nullptr) {
    told_.Tell();
  } else if (whole.leader_ != nullptr) {
    whole.told_.AwaitUntil(std::chrono::steady_clock::now() + kMost);
  }
  whole.transport_->Stop();
}

}  // namespace hvd::rt
