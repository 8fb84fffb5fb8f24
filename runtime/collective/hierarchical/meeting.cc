#include "runtime/collective/hierarchical/meeting.h"

#include <string>
#include <vector>

namespace hvd {
namespace {

// Ranks, or hosts, up to which all meet: a connection takes some 100 us.
constexpr int kMostMet = 64;

// Decided by what all ranks know alike, so that both of a pair mean each other.
std::vector<int> WhomToMeet(const Rails& rails) {
  std::vector<int> peers;
  for (int member = 0; member < rails.size(); ++member) {
    const RankPlace& place = rails.topology().place(member);
    const bool shares_rail = place.local_rank == rails.place().local_rank && rails.on_rail();
    if (place.host == rails.place().host) continue;
    if (rails.size() <= kMostMet || (rails.hosts() <= kMostMet && shares_rail))
      peers.push_back(member);
  }
  return peers;
}

// Until the connections that peers asked for are made.
absl::Status AwaitSettled(Waiter* waiter, Transport* transport) {
  const auto settling = transport->Settle();
  if (!settling.ok()) return waiter->EndEpoch(std::string(settling.status().message()));
  if (*settling == nullptr) return absl::OkStatus();
  absl::Status settled;
  const absl::Status waited = waiter->Until([&] {
    const absl::StatusOr<bool> done = (*settling)->Test();
    settled = done.status();
    return !done.ok() || *done;
  });
  if (!waited.ok() || settled.ok()) return waited;
  return waiter->EndEpoch(std::string(settled.message()));
}

}  // namespace

absl::Status MeetPeers(const Rails& rails, Transport* transport) {
  const std::vector<int> peers = WhomToMeet(rails);
  if (peers.empty() && !rails.on_rail()) return absl::OkStatus();
  // More than can meet: the neighbours on the rail, by a ring.
  const int group = peers.empty() ? rails.hosts() : rails.size();
  const std::vector<size_t> one_byte(static_cast<size_t>(group), 1);
  const std::vector<std::byte> mine(one_byte.size());
  std::vector<std::byte> theirs(one_byte.size());
  absl::Status met;
  if (peers.empty()) {
    met = rails.rail().Allgather(
        {.input = mine.data(), .output = theirs.data(), .bytes_by_rank = one_byte});
  } else {
    const AlltoallArgs args{mine.data(), theirs.data(), one_byte, one_byte};
    auto run = rails.everyone().StartAlltoall(args, peers);
    met = run.ok() ? Finish(rails.waiter(), run->get()) : run.status();
  }
  return met.ok() ? AwaitSettled(rails.waiter(), transport) : met;
}

}  // namespace hvd
