#include "runtime/engine/epoch_world.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "runtime/collective/hierarchical_collectives.h"
#include "runtime/collective/host_collectives.h"
#include "runtime/transport/usable_cores.h"

namespace hvd {
namespace {

constexpr uint16_t kCollectiveChannel = kAgreementChannel + 1;
constexpr int kChannelsPerSet = 2;

size_t Aligned(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

// What a process set has of the host memory: a board, the collectives' region, the direct path's.
// As large for a few ranks as for all: what is not touched costs nothing.
size_t RegionBytes(const Topology& job, int host) {
  const int local_size = job.hosts()[host].ranks;
  return Aligned(Board::Bytes(local_size, job.size())) +
         Aligned(HostCollectives::HostRegionBytes(local_size)) + Aligned(Direct::Bytes(local_size));
}

// The page and a region a process set.
size_t MemoryBytes(const Topology& job, int host) {
  return kHostPageBytes + kMaxProcessSets * RegionBytes(job, host);
}

// The set's ranks, by host; and the index of `rank` among them.
std::pair<Topology, int> SetTopology(const Topology& job, absl::Span<const int> ranks, int rank) {
  std::vector<HostShape> hosts;
  int last_host = -1;
  for (const int member : ranks) {
    const int host = job.place(member).host;
    if (host != last_host) hosts.push_back({job.hosts()[host].name, 0});
    last_host = host;
    ++hosts.back().ranks;
  }
  const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank);
  return {Topology(std::move(hosts)), static_cast<int>(at - ranks.begin())};
}

}  // namespace

EpochWorld::~EpochWorld() = default;

absl::StatusOr<std::unique_ptr<EpochWorld>> EpochWorld::Join(Session* session,
                                                             const JoinOptions& options) {
  std::unique_ptr<EpochWorld> world(new EpochWorld(session->topology(), session->rank()));
  const RankPlace& place = world->place();
  if (place.local_size > kMaxLocalRanks) {
    return absl::InvalidArgumentError("more than " + std::to_string(kMaxLocalRanks) +
                                      " ranks on one host");
  }
  auto grant = session->Join(options.after_epoch, MemoryBytes(world->topology_, place.host));
  if (!grant.ok()) return grant.status();
  world->grant_ = std::move(*grant);
  if (absl::Status met = world->Meet(session, options); !met.ok()) return met;
  return world;
}

absl::StatusOr<std::unique_ptr<EpochWorld>> EpochWorld::Alone() {
  std::unique_ptr<EpochWorld> world(new EpochWorld(Topology({{"localhost", 1}}), 0));
  auto memory = HostMemory::Alone(MemoryBytes(world->topology_, 0));
  if (!memory.ok()) return memory.status();
  world->grant_.epoch = 1;
  world->grant_.memory = std::move(*memory);
  if (absl::Status met = world->Meet(nullptr, {}); !met.ok()) return met;
  return world;
}

absl::Status EpochWorld::Meet(Session* session, const JoinOptions& options) {
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
    world->waiter_->set_transport(job->transport());
    world->transport_ =
        std::make_unique<SetTransport>(job->transport(), world->set_.global_ranks,
                                       static_cast<uint16_t>(kChannelsPerSet * world->set_.region));
  }
  world->BuildAgreement();
  if (absl::Status built = world->BuildCollectives(); !built.ok()) return built;
  return world;
}

int EpochWorld::LocalRankInJob(int local_rank) const {
  if (job_ == nullptr) return local_rank;
  const int in_set = topology_.first_rank(place().host) + local_rank;
  return job_->topology().place(set_.global_ranks[in_set]).local_rank;
}

std::byte* EpochWorld::region() const {
  const EpochWorld& whole = job();
  return whole.grant_.memory->after_page() +
         set_.region * RegionBytes(whole.topology_, whole.place().host);
}

void EpochWorld::ClearMemory() {
  if (job_ == nullptr || place().local_rank != 0) return;
  const size_t bytes = RegionBytes(job_->topology_, job_->place().host);
  // Where the pages cannot be given back, they are written.
  if (madvise(region(), bytes, MADV_REMOVE) != 0) std::memset(region(), 0, bytes);
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
  auto meeting = session->Exchange(grant_, address,
                                   options.arena != nullptr ? options.arena->Share() : ArenaFile{});
  if (!meeting.ok()) return meeting.status();
  arenas_ = HostArenas::Map(std::move(meeting->arenas), place().local_rank, options.arena);
  if (several_hosts) {
    absl::Status connected = transport_->Connect(meeting->addresses);
    if (!connected.ok()) return connected;
  }
  return session->Barrier(grant_);
}

void EpochWorld::BuildAgreement() {
  BoardPlace board;
  board.page = page();
  board.event_fds = event_fds();
  board.memory = region();
  board.local_rank = place().local_rank;
  board.local_size = place().local_size;
  board.first_rank = topology_.first_rank(place().host);
  board.world_size = topology_.size();
  board.several_hosts = topology_.hosts().size() > 1;
  board.host = place().host;
  if (!set_.global_ranks.empty()) board.global_ranks = set_.global_ranks.data();
  board_ = std::make_unique<Board>(board);
  if (!board.several_hosts) {
    std::byte* after_collectives = region() +
                                   Aligned(Board::Bytes(place().local_size, topology_.size())) +
                                   Aligned(HostCollectives::HostRegionBytes(place().local_size));
    direct_ = std::make_unique<Direct>(
        DirectPlace{page(), after_collectives, place().local_rank, place().local_size});
  }
  if (board.several_hosts && place().local_rank == 0) {
    leader_ = std::make_unique<Leader>(
        LeaderParts{&topology_, place().host, board_.get(), transport_.get()});
  }
}

absl::Status EpochWorld::BuildCollectives() {
  std::byte* memory = region() + Aligned(Board::Bytes(place().local_size, topology_.size()));
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

void EpochWorld::SetThresholds(const HierarchicalThresholds& thresholds) {
  if (on_host_ != nullptr) on_host_->set_thresholds(thresholds.host);
  if (across_hosts_ != nullptr) across_hosts_->set_thresholds(thresholds);
}

}  // namespace hvd
