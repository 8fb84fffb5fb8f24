// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/collective/worlds.h"

#include "tests/runtime/collective/hierarchical_world.h"
#include "tests/runtime/collective/host_world.h"
#include "tests/runtime/collective/message_world.h"

namespace hvd::rt::test {

std::vector<WorldMaker> HostWorlds() {
  std::vector<WorldMaker> makers;
  HostThresholds small_pieces;
  small_pieces.staged_piece_bytes = 4096;
  small_pieces.one_shot_bytes = 0;
  small_pieces.stream_bytes = 0;
  HostThresholds peer_reads = small_pieces;
  peer_reads.peer_reads = {.least_bytes = 1, .untried = true};
  for (const int size : {1, 2, 3, 4, 8}) {
    makers.push_back([=] { return std::make_unique<HostWorld>(size, "peer reads", peer_reads); });
    makers.push_back(
        [=] { return std::make_unique<HostWorld>(size, "defaults", HostThresholds{}); });
    makers.push_back(
        [=] { return std::make_unique<HostWorld>(size, "4 KB pieces", small_pieces); });
  }
  return makers;
}

std::vector<WorldMaker> DeterministicWorlds() {
  HierarchicalThresholds thresholds;
  thresholds.message.deterministic = true;
  thresholds.message.chunk_bytes = 100000;
  std::vector<WorldMaker> makers;
  for (const int size : {2, 3, 5}) {
    makers.push_back([=] {
      return std::make_unique<MessageWorld>(size, TransportKind::kLoopback, "deterministic",
                                            thresholds.message);
    });
  }
  for (const std::vector<int>& hosts : {std::vector{2, 2, 2}, std::vector{1, 3, 2}}) {
    makers.push_back([=] { return std::make_unique<HierarchicalWorld>(hosts, thresholds); });
  }
  return makers;
}

std::vector<WorldMaker> AcrossWorlds() {
  std::vector<WorldMaker> makers = DeterministicWorlds();
  MessageThresholds rings;
  rings.one_shot_bytes = 0;
  rings.ring_bytes = 0;
  rings.chain_bytes = 0;
  rings.segment_bytes = 12000;
  rings.window = 3;
  rings.chunk_bytes = 200000;
  const TransportKind loopback = TransportKind::kLoopback;
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    makers.push_back([=] { return std::make_unique<MessageWorld>(size, loopback, "defaults"); });
    makers.push_back(
        [=] { return std::make_unique<MessageWorld>(size, loopback, "rings", rings); });
  }
  for (const TransportKind kind : {TransportKind::kTcp, TransportKind::kUcx}) {
    makers.push_back([=] { return std::make_unique<MessageWorld>(2, kind, "defaults"); });
    makers.push_back([=] { return std::make_unique<MessageWorld>(3, kind, "defaults"); });
  }
  HierarchicalThresholds all_rails;
  all_rails.rails_bytes = 0;
  all_rails.message = rings;
  for (const std::vector<int>& hosts : {std::vector{2, 2}, std::vector{1, 3}, std::vector{2, 2, 2},
                                        std::vector{3, 2, 1}, std::vector{1, 1}, std::vector{3}}) {
    for (const HierarchicalThresholds& thresholds : {HierarchicalThresholds{}, all_rails}) {
      makers.push_back([=] { return std::make_unique<HierarchicalWorld>(hosts, thresholds); });
    }
  }
  for (const std::vector<int>& host_of_rank :
       {std::vector{0, 1, 0, 1}, std::vector{0, 1, 2, 0, 1, 2}, std::vector{0, 1, 1, 2, 0, 1},
        std::vector{0, 1, 0, 0}}) {
    for (const HierarchicalThresholds& thresholds : {HierarchicalThresholds{}, all_rails}) {
      makers.push_back([=] {
        return std::make_unique<HierarchicalWorld>("in turn over hosts", host_of_rank, thresholds);
      });
    }
  }
  return makers;
}

std::vector<WorldMaker> AllWorlds() {
  std::vector<WorldMaker> makers = HostWorlds();
  for (WorldMaker& maker : AcrossWorlds()) makers.push_back(std::move(maker));
  return makers;
}

}  // namespace hvd::rt::test
