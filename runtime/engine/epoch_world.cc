#include "runtime/engine/epoch_world.h"

#include "runtime/collective/host_collectives.h"
#include "runtime/transport/usable_cores.h"

namespace hvd {
namespace {

size_t Aligned(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

// The host memory: page, board, the collectives' region.
size_t MemoryBytes(int local_size, int world_size) {
  return kHostPageBytes + Aligned(Board::Bytes(local_size, world_size)) +
         Aligned(HostCollectives::HostRegionBytes(local_size));
}

}  // namespace

EpochWorld::~EpochWorld() = default;

absl::StatusOr<std::unique_ptr<EpochWorld>> EpochWorld::Join(Session* session, uint64_t after_epoch,
                                                             int host_cores) {
  std::unique_ptr<EpochWorld> world(new EpochWorld(session->topology(), session->rank()));
  const RankPlace& place = world->place();
  if (place.local_size > kMaxLocalRanks) {
    return absl::InvalidArgumentError("more than " + std::to_string(kMaxLocalRanks) +
                                      " ranks on one host");
  }
  auto grant = session->Join(after_epoch, MemoryBytes(place.local_size, world->topology_.size()));
  if (!grant.ok()) return grant.status();
  world->grant_ = std::move(*grant);
  if (absl::Status met = world->Meet(session, host_cores); !met.ok()) return met;
  return world;
}

absl::StatusOr<std::unique_ptr<EpochWorld>> EpochWorld::Alone() {
  std::unique_ptr<EpochWorld> world(new EpochWorld(Topology({{"localhost", 1}}), 0));
  auto memory = HostMemory::Alone(MemoryBytes(1, 1));
  if (!memory.ok()) return memory.status();
  world->grant_.epoch = 1;
  world->grant_.memory = std::move(*memory);
  if (absl::Status met = world->Meet(nullptr, 0); !met.ok()) return met;
  return world;
}

absl::Status EpochWorld::Meet(Session* session, int host_cores) {
  const bool several_hosts = topology_.hosts().size() > 1;
  const int cores = host_cores > 0 ? host_cores : UsableCores();
  waiter_ = std::make_unique<Waiter>(page(), place().local_rank, event_fds(),
                                     WaitPolicy::For(place().local_size, cores));
  std::string address;
  if (several_hosts) {
    if (absl::Status built = BuildTransport(); !built.ok()) return built;
    auto mine = transport_->Address();
    if (!mine.ok()) return mine.status();
    address = std::move(*mine);
  }
  if (session != nullptr) {
    auto addresses = session->Exchange(grant_, address);
    if (!addresses.ok()) return addresses.status();
    if (several_hosts) {
      if (absl::Status connected = transport_->Connect(*addresses); !connected.ok()) {
        return connected;
      }
    }
    if (absl::Status barrier = session->Barrier(grant_); !barrier.ok()) return barrier;
  }
  BoardPlace board;
  board.page = page();
  board.event_fds = event_fds();
  board.memory = grant_.memory->after_page();
  board.local_rank = place().local_rank;
  board.local_size = place().local_size;
  board.first_rank = topology_.first_rank(place().host);
  board.world_size = topology_.size();
  board.several_hosts = several_hosts;
  board_ = std::make_unique<Board>(board);
  if (several_hosts && place().local_rank == 0) {
    leader_ = std::make_unique<Leader>(
        LeaderParts{&topology_, place().host, board_.get(), transport_.get()});
  }
  return BuildCollectives();
}

absl::Status EpochWorld::BuildTransport() { return absl::UnimplementedError("several hosts"); }

absl::Status EpochWorld::BuildCollectives() {
  HostGroupOptions options;
  options.waiter = waiter_.get();
  options.region =
      grant_.memory->after_page() + Aligned(Board::Bytes(place().local_size, topology_.size()));
  options.local_rank = place().local_rank;
  options.local_size = place().local_size;
  auto collectives = HostCollectives::Create(options);
  if (!collectives.ok()) return collectives.status();
  collectives_ = std::move(*collectives);
  return absl::OkStatus();
}

}  // namespace hvd
