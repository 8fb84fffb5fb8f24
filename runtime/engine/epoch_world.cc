// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/epoch_world.h"
#include "runtime/engine/library_term.h"

#include <algorithm>
#include <chrono>

#include "runtime/collective/hierarchical/hierarchical_collectives.h"
#include "runtime/collective/host/host_collectives.h"
#include "runtime/engine/pairs/message_pair_link.h"
#include "runtime/transport/usable_cores.h"

namespace hvd {
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

size_t Aligned(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

// A process set's part of the host memory: a board, the collectives' region, the places of its
// pairs of ranks, the direct path's region where there is one.
struct RegionShape {
  RegionShape(const Topology& set, int host)
      : collectives_at(Aligned(Board::Bytes(set.hosts()[host].ranks, set.size()))),
        pairs_at(collectives_at +
                 Aligned(HostCollectives::HostRegionBytes(set.hosts()[host].ranks))),
        direct_at(pairs_at + Aligned(PairPlaces::Bytes(set.hosts()[host].ranks))),
        bytes(direct_at + (set.hosts().size() > 1 ? 0 : Direct::Bytes(set.hosts()[host].ranks))) {}
  const size_t collectives_at, pairs_at, direct_at, bytes;
};

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

// How much of every arena of the host all its ranks can see.
uint64_t SeenByAll(const HostPage& page) {
  uint64_t least = UINT64_MAX;
  for (uint32_t rank = 0; rank < page.local_size; ++rank) {
    least = std::min(least, page.sees_of_arenas[rank].load());
  }
  return least;
}

}  // namespace

EpochWorld::~EpochWorld() = default;

size_t EpochWorld::FirstBytes(const Topology& job, int host) {
  return HostPageBytes(job.hosts()[host].ranks) + RegionShape(job, host).bytes;
}

absl::StatusOr<std::unique_ptr<EpochWorld>> EpochWorld::Join(Session* session,
                                                             const JoinOptions& options) {
  auto grant = session->Join(FirstBytes);
  if (!grant.ok()) return grant.status();
  std::unique_ptr<EpochWorld> world(new EpochWorld(grant->topology, grant->rank));
  world->grant_ = std::move(*grant);
  if (world->place().local_size > kMaxLocalRanks) {
    return absl::InvalidArgumentError("more than " + std::to_string(kMaxLocalRanks) +
                                      " ranks on one host");
  }
  if (options.on_start != nullptr) {
    absl::Status fine = options.on_start(world->topology_, world->rank_);
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
  auto memory = HostMemory::Alone(FirstBytes(world->topology_, 0));
  if (!memory.ok()) return memory.status();
  world->grant_.epoch = 1;
  world->grant_.memory = std::move(*memory);
  if (absl::Status met = world->Meet(nullptr, options); !met.ok()) return met;
  return world;
}

absl::Status EpochWorld::Meet(Session* session, const JoinOptions& options) {
  region_ = grant_.memory->after_page();
  max_pending_ = options.max_pending;
  const int cores = UsableCores(options.host_cores);
  waiter_ = std::make_unique<Waiter>(page(), place().local_rank, event_fds(),
                                     WaitPolicy::For(place().local_size, cores));
  if (session != nullptr) {
    if (absl::Status connected = Connect(session, options); !connected.ok()) return connected;
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
  if (world->topology_.hosts().size() > 1) {
    const int channels = world->set_.channels != 0 ? world->set_.channels : world->set_.region;
    world->waiter_->set_transport(job->transport());
    world->transport_ =
        std::make_unique<SetTransport>(job->transport(), world->set_.global_ranks,
                                       static_cast<uint16_t>(kChannelsPerSet * channels));
  }
  if (absl::Status mapped = world->MapRegion(); !mapped.ok()) return mapped;
  world->BuildAgreement();
  if (absl::Status built = world->BuildCollectives(); !built.ok()) return built;
  return world;
}

absl::StatusOr<uint64_t> EpochWorld::TakeMemoryForSet(absl::Span<const int> global_ranks) {
  const Topology set = SetTopology(topology_, global_ranks, rank_).first;
  const int index = SetTopology(topology_, global_ranks, rank_).second;
  return grant_.memory->Take(RegionShape(set, set.place(index).host).bytes);
}

// All members have agreed on the set, and wait in it for one that cannot come.
absl::Status EpochWorld::MapRegion() {
  HostMemory& memory = *job_->grant_.memory;
  const size_t bytes = RegionShape(topology_, place().host).bytes;
  absl::StatusOr<std::shared_ptr<std::byte>> mapped;
  const absl::StatusOr<uint64_t> at =
      set_.memory_at != 0 ? set_.memory_at : memory.PlaceOfRegion(set_.region, bytes);
  mapped = at.ok() ? memory.Map(*at, bytes) : at.status();
  if (!mapped.ok()) {
    const std::string text = "rank " + std::to_string(job_->rank()) + " cannot enter process set " +
                             std::to_string(set_.id) + ": " +
                             std::string(mapped.status().message());
    return job_->board().Abort({text.c_str(), job_->rank()});
  }
  mapped_ = *std::move(mapped);
  region_ = mapped_.get();
  return absl::OkStatus();
}

int EpochWorld::LocalRankInJob(int local_rank) const {
  if (job_ == nullptr) return local_rank;
  const int in_set = topology_.rank_at(place().host, local_rank);
  return job_->topology().place(set_.global_ranks[in_set]).local_rank;
}

void EpochWorld::GiveMemoryBack() {
  if (job_ == nullptr || place().local_rank != 0) return;
  board_->GiveGrown();
  HostPairLink::GiveBack(pair_places(), job_->grant_.memory.get());
  const size_t bytes = RegionShape(topology_, place().host).bytes;
  HostMemory& memory = *job_->grant_.memory;
  if (set_.memory_at != 0) return memory.Give(set_.memory_at, bytes);
  memory.GiveRegion(set_.region, bytes);
}

PairPlaces EpochWorld::pair_places() const {
  return {region_ + RegionShape(topology_, place().host).pairs_at, place().local_size};
}

absl::StatusOr<std::unique_ptr<PairLink>> EpochWorld::PairLinkTo(int rank) {
  const RankPlace& theirs = topology_.place(rank);
  if (theirs.host != place().host) {
    return std::make_unique<MessagePairLink>(
        MessagePairPlace{transport_.get(), rank, kPairChannel, set_.id});
  }
  return HostPairLink::Make(
      {job().grant_.memory.get(), pair_places(), place().local_rank, theirs.local_rank});
}

bool EpochWorld::MayHavePairLink(int rank) const {
  const RankPlace& theirs = topology_.place(rank);
  return theirs.host != place().host ||
         pair_places().Of(place().local_rank, theirs.local_rank).load() != 0;
}

absl::Status EpochWorld::Connect(Session* session, const JoinOptions& options) {
  const bool several_hosts = topology_.hosts().size() > 1;
  std::string address;
  if (several_hosts) {
    auto transport = options.make_transport({rank_, topology_.size(), grant_.token});
    if (!transport.ok()) return transport.status();
    transport_ = std::move(*transport);
    waiter_->set_transport(transport_.get());
    auto mine = transport_->Address();
    if (!mine.ok()) return mine.status();
    address = std::move(*mine);
  }
  std::vector<Term> terms = options.terms;
  terms.insert(terms.begin(), LibraryTerm());
  auto meeting = session->Exchange(grant_, WriteCard(address, terms),
                                   options.arena != nullptr ? options.arena->Share() : ArenaFile{});
  if (!meeting.ok()) return meeting.status();
  arenas_ = HostArenas::Map(std::move(meeting->arenas), place().local_rank, options.arena);
  const auto addresses = ReadCards(meeting->addresses, topology_, terms);
  if (!addresses.ok()) return addresses.status();
  if (several_hosts) {
    absl::Status connected = transport_->Connect(*addresses);
    if (!connected.ok()) return connected;
  }
  page()->sees_of_arenas[place().local_rank].store(arenas_->sees());
  if (absl::Status met = session->Barrier(grant_); !met.ok()) return met;
  arenas_->Agree(SeenByAll(*page()));
  return absl::OkStatus();
}

void EpochWorld::BuildAgreement() {
  const WatchPlace seen = watch();
  if (transport_ != nullptr) {
    MessageCounts& counts = WatchOf(seen.page, seen.local_rank).messages[seen.region];
    counts.Clear();  // another set's
    transport_->set_notes({&counts, &set_.global_ranks});
  }
  BoardPlace board;
  board.page = page();
  board.event_fds = event_fds();
  board.memory = region_;
  board.local_rank = place().local_rank;
  board.local_size = place().local_size;
  board.ranks_here = topology_.ranks_of(place().host);
  board.world_size = topology_.size();
  board.several_hosts = topology_.hosts().size() > 1;
  board.host = place().host;
  board.space = job().grant_.memory.get();
  board.most_pending = job().max_pending_;
  board.set = set_.id;
  if (!set_.global_ranks.empty()) board.global_ranks = set_.global_ranks.data();
  if (!board.several_hosts) {
    std::byte* const direct_at = region_ + RegionShape(topology_, place().host).direct_at;
    direct_ = std::make_unique<Direct>(
        DirectPlace{page(), direct_at, place().local_rank, place().local_size});
  }
  if (direct_ != nullptr) {
    board.bind = [direct = direct_.get()](std::string_view name) {
      return direct->numbers().Bind(name);
    };
  }
  board_ = std::make_unique<Board>(board);
  if (board.several_hosts && place().local_rank == 0) {
    leader_ = std::make_unique<Leader>(LeaderParts{.topology = &topology_,
                                                   .host = place().host,
                                                   .board = board_.get(),
                                                   .transport = transport_.get(),
                                                   .generation = static_cast<uint64_t>(set_.id)});
  }
}

// Ranks wait for one another in it, so hvdd must see who is in it.
absl::Status EpochWorld::BuildCollectives() {
  RankActivity& mine = activity();
  mine.set.store(set_.id, std::memory_order_relaxed);
  mine.pending.store(1, std::memory_order_relaxed);
  mine.callers.store(1, std::memory_order_relaxed);
  BeginWork(&mine.work, mine.calls.load() + 1,
            job_ == nullptr ? "hvd_init" : "hvd_add_process_set");
  waiter_->set_moves(&mine.moves);
  absl::Status made = MakeCollectives();
  if (!made.ok()) return made;
  EndWork(&mine.work);
  mine.pending.store(0, std::memory_order_relaxed);
  mine.callers.store(0, std::memory_order_relaxed);
  return made;
}

absl::Status EpochWorld::MakeCollectives() {
  std::byte* const memory = region_ + RegionShape(topology_, place().host).collectives_at;
  if (transport_ == nullptr) {
    auto host = HostCollectives::Create({.waiter = waiter_.get(),
                                         .region = memory,
                                         .local_rank = place().local_rank,
                                         .local_size = place().local_size});
    if (!host.ok()) return host.status();
    on_host_ = host->get();
    collectives_ = std::move(*host);
    return absl::OkStatus();
  }
  auto all = HierarchicalCollectives::Create({.waiter = waiter_.get(),
                                              .transport = transport_.get(),
                                              .region = memory,
                                              .topology = &topology_,
                                              .rank = rank_,
                                              .channel = kCollectiveChannel});
  if (!all.ok()) return all.status();
  across_hosts_ = all->get();
  collectives_ = std::move(*all);
  return across_hosts_->MeetPeers();
}

void EpochWorld::LetGo() {
  constexpr std::chrono::milliseconds kMost{200};  // the job's executor looks within microseconds
  EpochWorld& whole = job_ == nullptr ? *this : *job_;
  if (whole.transport_ == nullptr) return;
  {
    const MutexLock lock(&whole.told_mutex_);
    if (job_ == nullptr) {
      whole.told_ = true;
      whole.told_changed_.NotifyAll();
    } else if (whole.leader_ != nullptr) {
      const auto end = std::chrono::steady_clock::now() + kMost;
      while (!whole.told_ && whole.told_changed_.WaitUntil(&whole.told_mutex_, end)) {
      }
    }
  }
  whole.transport_->Stop();
}

void EpochWorld::SetThresholds(const HierarchicalThresholds& thresholds) {
  if (on_host_ != nullptr) on_host_->set_thresholds(thresholds.host);
  if (across_hosts_ != nullptr) across_hosts_->set_thresholds(thresholds);
}

}  // namespace hvd
