#include "runtime/engine/epoch_world.h"

#include "runtime/collective/hierarchical_collectives.h"
#include "runtime/collective/host_collectives.h"
#include "runtime/transport/usable_cores.h"

namespace hvd {
namespace {

constexpr uint16_t kCollectiveChannel = kAgreementChannel + 1;

size_t Aligned(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

// The host memory: page, board, the collectives' region.
size_t MemoryBytes(int local_size, int world_size) {
  return kHostPageBytes + Aligned(Board::Bytes(local_size, world_size)) +
         Aligned(HostCollectives::HostRegionBytes(local_size)) + Aligned(Direct::Bytes(local_size));
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
  auto grant =
      session->Join(options.after_epoch, MemoryBytes(place.local_size, world->topology_.size()));
  if (!grant.ok()) return grant.status();
  world->grant_ = std::move(*grant);
  if (absl::Status met = world->Meet(session, options); !met.ok()) return met;
  return world;
}

absl::StatusOr<std::unique_ptr<EpochWorld>> EpochWorld::Alone() {
  std::unique_ptr<EpochWorld> world(new EpochWorld(Topology({{"localhost", 1}}), 0));
  auto memory = HostMemory::Alone(MemoryBytes(1, 1));
  if (!memory.ok()) return memory.status();
  world->grant_.epoch = 1;
  world->grant_.memory = std::move(*memory);
  if (absl::Status met = world->Meet(nullptr, {}); !met.ok()) return met;
  return world;
}

absl::Status EpochWorld::Meet(Session* session, const JoinOptions& options) {
  const int cores = options.host_cores > 0 ? options.host_cores : UsableCores();
  waiter_ = std::make_unique<Waiter>(page(), place().local_rank, event_fds(),
                                     WaitPolicy::For(place().local_size, cores));
  if (session != nullptr) {
    if (absl::Status connected = Connect(session, options); !connected.ok()) return connected;
  }
  BuildAgreement();
  return BuildCollectives();
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
  board.memory = grant_.memory->after_page();
  board.local_rank = place().local_rank;
  board.local_size = place().local_size;
  board.first_rank = topology_.first_rank(place().host);
  board.world_size = topology_.size();
  board.several_hosts = topology_.hosts().size() > 1;
  board.host = place().host;
  board_ = std::make_unique<Board>(board);
  if (!board.several_hosts) {
    std::byte* after_collectives = grant_.memory->after_page() +
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
  std::byte* region =
      grant_.memory->after_page() + Aligned(Board::Bytes(place().local_size, topology_.size()));
  if (transport_ == nullptr) {
    auto host = HostCollectives::Create({.waiter = waiter_.get(),
                                         .region = region,
                                         .local_rank = place().local_rank,
                                         .local_size = place().local_size});
    if (!host.ok()) return host.status();
    collectives_ = std::move(*host);
    return absl::OkStatus();
  }
  auto all = HierarchicalCollectives::Create({.waiter = waiter_.get(),
                                              .transport = transport_.get(),
                                              .region = region,
                                              .topology = &topology_,
                                              .rank = rank_,
                                              .channel = kCollectiveChannel});
  if (!all.ok()) return all.status();
  collectives_ = std::move(*all);
  return absl::OkStatus();
}

}  // namespace hvd
