// SPDX-License-Identifier: Apache-2.0
// What this rank has given to the sets that only their members know, also to those on the way:
// keys, places in the page, channels, and numbers. Pure.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hvd::rt {

class MemberNumbers {
 public:
  // Makes the number of a set: of its first rank, and of how many that one has led.
  static int32_t IdOf(int first_rank, int32_t led);

  // A new epoch.
  void Clear() { *this = MemberNumbers(); }
  // False: a set of these ranks and this key is being made or removed.
  bool TakeKey(const std::vector<int>& ranks, const std::string& key) {
    return keys_.emplace(ranks, key).second;
  }
  void GiveKey(const std::vector<int>& ranks, const std::string& key) { keys_.erase({ranks, key}); }
  // Returns a place of the page where hvdd looks; 0: all are taken.
  int TakeRegion();
  void GiveRegion(int region) { regions_.erase(region); }
  // False: they are taken.
  bool TakeChannels(int channels) { return channels_.insert(channels).second; }
  void GiveChannels(int channels) { channels_.erase(channels); }
  // Counts a set that this rank leads; 0: it has led as many as have numbers.
  int32_t NextLed();

 private:
  std::set<std::pair<std::vector<int>, std::string>> keys_;
  std::set<int> regions_;
  std::set<int> channels_;
  int32_t led_ = 0;  // never goes back within an epoch
};

}  // namespace hvd::rt
