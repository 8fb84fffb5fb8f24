// SPDX-License-Identifier: Apache-2.0
// members MODE: process sets that only their members make.
//   pairs    each rank makes sets with both its neighbours, on two threads, in opposite orders
//   keys     many sets of the same ranks, told apart by their keys; all in use at once
//   again    one is made, used and removed, many times, beside one of all ranks
//   refused  what makes no sense, or is there already
//   joined   a member that has joined instead is named; then the set is made
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/system/programs/checks.h"

namespace {

constexpr int kSets = 20;  // more than there are of those of all ranks

void Need(bool holds, const std::string& what) {
  if (!holds) Fail(what + ": " + hvd_last_error());
}

int32_t Make(const std::vector<int32_t>& ranks, const std::string& key) {
  const int set = hvd::add_process_set_of_members(ranks, key);
  const std::vector<int32_t> ids = hvd::process_set_ids(), members = hvd::process_set_ranks(set);
  Need(std::count(ids.begin(), ids.end(), set) == 1, "the set's number is not among all");
  Need(std::is_permutation(ranks.begin(), ranks.end(), members.begin(), members.end()),
       "the set has other ranks");
  Need(hvd::process_set_size(set) == static_cast<int>(ranks.size()), "its size");
  Need(members[hvd::process_set_rank(set)] == hvd::rank(), "its rank");
  return set;
}

// One of 2000 elements, for it goes by the board; and that the number means the same to all.
void Use(int32_t set) {
  std::vector<int64_t> data(2000, set);
  hvd::Options options;
  options.op = hvd::Op::kSum;
  options.process_set = set;
  hvd::allreduce(data, options);
  Need(data[1999] == int64_t{set} * hvd_process_set_size(set), "a sum in a set of members");
}

void Pairs() {
  const int rank = hvd::rank(), size = hvd::size();
  const auto with = [&](int other) {
    const std::vector<int32_t> ranks = {rank, other};
    const std::string key = std::to_string(std::min(rank, other));
    for (int time = 0; time < 3; ++time) {
      const int32_t set = Make(ranks, key);
      Use(set);
      hvd::remove_process_set(set);
    }
  };
  std::thread right([&] {
    if (rank + 1 < size) with(rank + 1);
  });
  if (rank > 0) with(rank - 1);
  right.join();
}

std::vector<int32_t> LastRanks() {
  std::vector<int32_t> ranks;
  for (int rank = hvd::size() - 1; rank >= (hvd::size() > 2 ? 1 : 0); --rank) ranks.push_back(rank);
  return ranks;
}
bool IsLast() { return hvd::size() == 2 || hvd::rank() > 0; }

void Keys() {
  if (!IsLast()) return;
  std::vector<int32_t> sets;
  for (int i = 0; i < kSets; ++i) sets.push_back(Make(LastRanks(), "key " + std::to_string(i)));
  for (const int32_t set : sets) Use(set);
  for (const int32_t a : sets)
    Need(std::count(sets.begin(), sets.end(), a) == 1, "one number twice");
  int32_t same = -1;
  const std::vector<int32_t> ranks = LastRanks();
  Need(hvd_add_process_set_members(ranks.data(), static_cast<int32_t>(ranks.size()), "key 3",
                                   &same) == HVD_ERR_DUPLICATE &&
           same == sets[3],
       "a key that is there");
  for (const int32_t set : sets) Must(hvd_remove_process_set(set), "remove");
  Need(hvd_process_set_size(sets[0]) == -1, "a removed set is there");
}

void Again() {
  const std::vector<int32_t> first = {0};
  for (int time = 0; time < 10; ++time) {
    int32_t all = -1;
    Must(hvd_add_process_set(first.data(), 1, &all), "a set of all ranks");
    if (IsLast()) {
      const int32_t set = Make(LastRanks(), "again");
      Use(set);
      Must(hvd_remove_process_set(set), "remove");
    }
    if (hvd::rank() == 0) Use(all);
    Must(hvd_remove_process_set(all), "remove");
  }
}

void Refused() {
  int32_t set = -1;
  const int32_t other = (hvd::rank() + 1) % hvd::size(), mine = hvd::rank(), none = hvd::size();
  const int32_t twice[] = {mine, mine};
  Need(hvd_add_process_set_members(&other, 1, "x", &set) == HVD_ERR_INVALID, "no member");
  Need(std::strstr(hvd_last_error(), "only members") != nullptr, "no member");
  Need(hvd_add_process_set_members(&none, 1, "x", &set) == HVD_ERR_INVALID, "no rank");
  Need(hvd_add_process_set_members(twice, 2, "x", &set) == HVD_ERR_INVALID, "twice");
  Need(hvd_add_process_set_members(nullptr, 1, "x", &set) == HVD_ERR_INVALID, "NULL");
  std::vector<int32_t> sets;
  for (int i = 0;; ++i) {  // alone, until there is no room
    const hvd_status_t made =
        hvd_add_process_set_members(&mine, 1, std::to_string(i).c_str(), &set);
    if (made == HVD_ERR_UNSUPPORTED) break;
    Must(made, "alone");
    sets.push_back(set);
  }
  Need(sets.size() == 48, "there is room for " + std::to_string(sets.size()));
  hvd::barrier();
  const int32_t pair[] = {0, 1};
  if (mine == 1) Must(hvd_remove_process_set(sets.back()), "remove");
  if (mine < 2) {
    Need(hvd_add_process_set_members(pair, 2, "p", &set) == HVD_ERR_UNSUPPORTED, "no room on 0");
    Need(std::strstr(hvd_last_error(), "rank 0 is a member of 48") != nullptr, "who has none");
  }
}

void Joined() {
  const std::vector<int32_t> all = {0, 1};
  if (hvd::rank() == 0) {
    int32_t set = -1;
    Need(hvd_add_process_set_members(all.data(), 2, "j", &set) == HVD_ERR_MISMATCH, "joined");
    Need(std::strstr(hvd_last_error(), "rank 1 has joined") != nullptr, "who");
  }
  hvd::join();
  if (hvd::rank() < 2) Use(Make(all, "j"));
}

}  // namespace

int main(int argc, char** argv) try {
  hvd::Session session;
  const std::string mode = argc == 2 ? argv[1] : "";
  if (mode == "pairs") Pairs();
  if (mode == "keys") Keys();
  if (mode == "again") Again();
  if (mode == "refused") Refused();
  if (mode == "joined") Joined();
  std::printf("%s is right\n", mode.c_str());
} catch (const hvd::Error& error) {
  Fail(error.what());
}
