// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/world/meet_others.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace hvd::rt {
namespace {

// How much of every arena of the host all its ranks can see.
uint64_t SeenByAll(const HostPage& page) {
  uint64_t least = UINT64_MAX;
  for (uint32_t rank = 0; rank < page.local_size; ++rank) {
    least = std::min(least, page.sees_of_arenas[rank].load());
  }
  return least;
}

// Returns the address by which the others reach it.
absl::StatusOr<std::string> MakeTransport(const MeetingPlace& place, const JoinOptions& options,
                                          std::unique_ptr<Transport>* transport) {
  auto made = options.make_transport(
      {place.seat->rank(), place.seat->topology().size(), place.grant->token});
  if (!made.ok()) return made.status();
  *transport = std::move(*made);
  place.waiter->set_transport(transport->get());
  return (*transport)->Address();
}

}  // namespace

absl::StatusOr<std::unique_ptr<HostArenas>> MeetOthers(const MeetingPlace& place,
                                                       const JoinOptions& options,
                                                       std::unique_ptr<Transport>* transport) {
  const Topology& topology = place.seat->topology();
  const int local_rank = place.seat->place().local_rank;
  const bool several_hosts = topology.hosts().size() > 1;
  std::string address;
  if (several_hosts) {
    auto mine = MakeTransport(place, options, transport);
    if (!mine.ok()) return mine.status();
    address = std::move(*mine);
  }
  auto meeting =
      place.session->Exchange(*place.grant, WriteCard(address, options.terms),
                              options.arena != nullptr ? options.arena->Share() : ArenaFile{});
  if (!meeting.ok()) return meeting.status();
  auto arenas = HostArenas::Map(std::move(meeting->arenas), local_rank, options.arena);
  const auto addresses = ReadCards(meeting->addresses, topology, options.terms);
  if (!addresses.ok()) return addresses.status();
  if (several_hosts) {
    if (absl::Status connected = (*transport)->Connect(*addresses); !connected.ok()) {
      return connected;
    }
  }
  HostPage& page = *place.grant->memory->page();
  page.sees_of_arenas[local_rank].store(arenas->sees());
  if (absl::Status met = place.session->Barrier(*place.grant); !met.ok()) return met;
  arenas->Agree(SeenByAll(page));
  return arenas;
}

}  // namespace hvd::rt
