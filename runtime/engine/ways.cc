// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/ways.h"

#include <utility>
#include <vector>

namespace hvd::rt {
namespace {

TensorPlaces PlacesOf(const EpochWorld& world) {
  const RankPlace& here = world.place();
  std::vector<TensorPlaces::Owner> owners;
  owners.reserve(here.local_size);
  for (int local = 0; local < here.local_size; ++local) {
    owners.push_back({world.LocalRankInJob(local),
                      world.GlobalRank(world.topology().rank_at(here.host, local))});
  }
  return {world.arenas(), std::move(owners), here.local_rank};
}

}  // namespace

Ways::Ways(EpochWorld* world, WorkNotes* notes)
    : places_(PlacesOf(*world)),
      direct_({world->direct(), &world->board(), &world->waiter(),
               world->set_collectives().on_host(), &places_, notes}),
      board_(&world->board(), world->arenas()),
      pairs_(world) {}

// Others count on a request that this rank has marked directly, and on a turn that it has taken:
// when it must go to the board, now or later, there must be room.
absl::Status Ways::Prepare(LocalName* name, const Request& request) {
  if (!IsUsers(request.signature.kind)) return absl::OkStatus();
  if (direct_.exists()) direct_.FindNumber(name);
  if (name->direct.ticket.number != 0 || request.unnamed) {
    if (absl::Status kept = board_.Keep(*name); !kept.ok()) return kept;
  }
  name->prepared = true;
  return absl::OkStatus();
}

absl::Status Ways::Mark(LocalName* name, bool is_away) {
  name->direct.marked = direct_.exists() && !is_away && direct_.Mark(name);
  return name->direct.marked ? absl::OkStatus() : MarkOnBoard(name, is_away);
}

absl::Status Ways::MarkOnBoard(LocalName* name, bool is_away) {
  return board_.Mark(name, !is_away && direct_.WantsNumber(*name));
}

absl::Status Ways::FallBack(LocalName* name, bool is_away) {
  name->direct.marked = false;
  return MarkOnBoard(name, is_away);
}

LocalName* Ways::Take(const LogEntry& entry, uint64_t submissions) {
  LocalName* name = board_.Take(entry.number);
  if (name == nullptr) return nullptr;
  direct_.TakeNumber(entry, name, submissions);
  name->board.wants_number = false;
  return name;
}

}  // namespace hvd::rt
