// SPDX-License-Identifier: Apache-2.0
// What the fake daemon does in an elastic job. Its members do at once what is asked of them; the
// command `elastic HOST WHAT SIZE` says that on HOST, with the start of epoch 1, a rank dies (WHAT
// is "rank") or the daemon (WHAT is "host"), and that all end well in a later epoch of SIZE ranks.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "hvd/v1/link_a.pb.h"

namespace hvd::cli {

class FakeElastic {
 public:
  struct Speech {
    std::function<void(const v1::Event&)> say;
    std::function<void(const v1::OutputChunk&)> print;
  };
  explicit FakeElastic(Speech speech) : speech_(std::move(speech)) {}

  void Take(const v1::Command& command);

 private:
  void Spawn(const v1::SpawnSlots& spawn);
  void Join();
  void Start(uint64_t epoch);
  void Leave(uint64_t epoch);  // all of its members, which stand then
  void Stand(uint64_t member, uint64_t after);
  void Exit(uint64_t member, int signal, bool told_before);
  void Stop();

  const Speech speech_;
  v1::PrepareHost prepare_;
  v1::EpochPropose epoch_;
  std::map<uint64_t, uint32_t> living_;  // members, with their slots
  std::set<uint64_t> in_epoch_;          // and have not left it
  bool launched_ = false;
};

}  // namespace hvd::cli
