// SPDX-License-Identifier: Apache-2.0
#include "placement/core_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"

namespace hvd {
namespace {

using Cores = std::vector<int>;

std::vector<Cores> EvenShares(const CoreWish& wish) {
  std::vector<Cores> shares;
  const int slots = static_cast<int>(wish.near.size());
  shares.reserve(wish.near.size());
  for (int slot = 0; slot < slots; ++slot) shares.push_back(CoresFor(slot, slots, wish.cores));
  return shares;
}

// Sets of cores with the slots that are to share them; nothing: some cores are in two of the sets.
using Groups = std::map<Cores, std::vector<int>>;
std::optional<Groups> GroupsOf(const CoreWish& wish) {
  Groups groups;
  for (size_t slot = 0; slot < wish.near.size(); ++slot) {
    Cores here;
    std::set_intersection(wish.near[slot].begin(), wish.near[slot].end(), wish.cores.begin(),
                          wish.cores.end(), std::back_inserter(here));
    groups[here].push_back(static_cast<int>(slot));
  }
  Cores given;
  for (const auto& [cores, slots] : groups) given.insert(given.end(), cores.begin(), cores.end());
  std::sort(given.begin(), given.end());
  if (std::adjacent_find(given.begin(), given.end()) != given.end()) return std::nullopt;
  auto others = groups.extract(Cores());
  if (others.empty()) return groups;
  others.key().clear();
  std::set_difference(wish.cores.begin(), wish.cores.end(), given.begin(), given.end(),
                      std::back_inserter(others.key()));
  groups.insert(std::move(others));
  return groups;
}

}  // namespace

std::vector<int> CoresFor(int local_rank, int local_size, absl::Span<const int> cores) {
  const int count = static_cast<int>(cores.size());
  if (local_size < 1 || local_rank < 0 || local_rank >= local_size || count < 1) {
    return {cores.begin(), cores.end()};
  }
  if (count < local_size) {
    if (local_size % count != 0) return {cores.begin(), cores.end()};
    return {cores[local_rank / (local_size / count)]};
  }
  const int share = count / local_size;
  const int rest = count % local_size;
  const int first = local_rank * share + std::min(local_rank, rest);
  const absl::Span<const int> mine = cores.subspan(first, share + (local_rank < rest ? 1 : 0));
  return {mine.begin(), mine.end()};
}

std::vector<std::vector<int>> PlanCores(const CoreWish& wish) {
  std::vector<Cores> even = EvenShares(wish);
  const std::optional<Groups> groups = GroupsOf(wish);
  if (!groups.has_value()) return even;
  std::vector<Cores> shares(wish.near.size());
  for (const auto& [cores, slots] : *groups) {
    if (cores.size() < slots.size()) return even;
    for (size_t i = 0; i < slots.size(); ++i) {
      shares[slots[i]] = CoresFor(static_cast<int>(i), static_cast<int>(slots.size()), cores);
    }
  }
  const size_t least = wish.cores.size() / std::max<size_t>(wish.near.size(), 1);
  const bool loses = std::any_of(shares.begin(), shares.end(),
                                 [&](const Cores& share) { return share.size() < least; });
  return loses && !wish.may_lose ? even : shares;
}

std::string FormatCores(absl::Span<const int> cores) {
  std::string text;
  for (size_t from = 0; from < cores.size();) {
    size_t to = from;
    while (to + 1 < cores.size() && cores[to + 1] == cores[to] + 1) ++to;
    absl::StrAppend(&text, text.empty() ? "" : ",", cores[from]);
    if (to > from) absl::StrAppend(&text, "-", cores[to]);
    from = to + 1;
  }
  return text.empty() ? "-" : text;
}

}  // namespace hvd
