// SPDX-License-Identifier: Apache-2.0
// Worlds: ranks as threads of the test over one implementation of Collectives each, so that one
// suite runs on all of them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/collective/collectives.h"

namespace hvd::rt::test {

// Runs on every rank's thread; returns what is wrong, or nothing. (Catch's macros are for the main
// thread only.)
using RankBody = std::function<std::string(Collectives& collectives)>;

class World {
 public:
  virtual ~World() = default;
  virtual std::string name() const = 0;
  virtual int size() const = 0;
  // One epoch: ranks meet, run the body, leave. The first complaint, or nothing.
  virtual std::string Run(const RankBody& body) = 0;
  // From a body: ends the epoch for all.
  virtual void Abort(const char* cause) = 0;
};

using WorldMaker = std::function<std::unique_ptr<World>()>;
// One host, in several sizes and ways.
std::vector<WorldMaker> HostWorlds();
// Over a transport, alone and beside the ways of hosts.
std::vector<WorldMaker> AcrossWorlds();
// Worlds whose sums do not depend on how tensors were fused.
std::vector<WorldMaker> DeterministicWorlds();
// Every implementation in several sizes.
std::vector<WorldMaker> AllWorlds();

}  // namespace hvd::rt::test
