// SPDX-License-Identifier: Apache-2.0
// What the compiled programs of this process are at: which of their calls are under way, and which
// calls else those programs have. hvd/jax/orders finds by it that the ranks' programs wait for one
// another, and ends that here.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "python/operators/jax/continuations.h"

namespace hvd::xla {

// A call is known by its key (Call::key). Texts with several keys have kBetweenKeys between them.
inline constexpr char kBetweenKeys = '\x1f';

class UnderWay {
 public:
  // The process's one: XLA calls functions without an object.
  static UnderWay& Get();

  // A run begins, of a program that has these calls.
  void Begin(int64_t run, std::string keys);
  // A call of that run is there until it is removed.
  void Add(const void* call, std::string key, int64_t run);
  void Remove(const void* call);

  struct View {
    uint64_t changes = 0;  // how often anything of this has changed
    std::string keys;      // of the calls under way
    std::string programs;  // the keys of all calls of the programs that have these
  };
  View Look();

  // Calls of these keys may soon be ended because the ranks wait for one another: should one end
  // with a mismatch, then with this text, and not before End or Acquit.
  void Judge(const std::vector<std::string>& keys, const std::string& text);
  // Ends these calls, which were judged and have not come here, for all ranks, by taking part with
  // what fits no other rank's. Calls of these keys that come meanwhile are to be refused.
  void End(const std::vector<std::string>& keys);
  // They go on.
  void Acquit(const std::vector<std::string>& keys);

  // Empty: there is none.
  std::string Judgement(const std::string& key);
  // True: it is to end later, and will. (This rank may leave when it has: its part in the others'
  // calls comes before that.)
  bool Hold(const FutureEnd& end);
  bool IsRefused(const std::string& key);
  void RefusalEnds(const std::string& key);

 private:
  struct Entry {
    std::string key;
    int64_t run = 0;
  };
  bool Has(const std::string& key) const;  // REQUIRES: mutex_
  void LetEnd();

  // The number of runs that may overlap. Nobody says when one is over.
  static constexpr size_t kMostRuns = 256;

  std::mutex mutex_;
  uint64_t changes_ = 0;                              // by mutex_, as the rest
  std::deque<std::pair<int64_t, std::string>> runs_;  // the latest comes first
  std::unordered_map<const void*, Entry> calls_;
  std::unordered_map<std::string, std::string> judged_;  // the texts
  std::unordered_map<std::string, int> refused_;         // how often
  bool holds_ = false;
  std::vector<FutureEnd> held_;
};

}  // namespace hvd::xla
