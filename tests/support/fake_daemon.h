// SPDX-License-Identifier: Apache-2.0
// A daemon of link B in a thread, for ranks that are threads of a test: one or several hosts, epoch
// after epoch.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "hostfile/topology.h"
#include "proto/hello.h"
#include "proto/page/host_page.h"

namespace hvd {

class FakeDaemon {
 public:
  explicit FakeDaemon(std::vector<HostShape> hosts);
  ~FakeDaemon();  // ends when all ranks have closed their links

  // Returns what HVD_LINK would say for a rank.
  LinkName link(int rank) const;
  // The page of a host in the current epoch, to abort it as the daemon would. Valid once a rank has
  // joined.
  HostPage* page(int host) const { return pages_[host]; }
  const int* event_fds(int host) const;

 private:
  void Serve();
  bool ServeEpoch(uint64_t epoch);
  bool ServeTable(uint64_t epoch);
  void StartEpoch(uint64_t epoch);
  void CloseEpoch();

  const Topology topology_;
  std::string directory_;
  int listener_ = -1;
  std::vector<int> connections_;  // by rank
  std::vector<HostPage*> pages_;  // by host
  std::vector<int> memories_;
  std::vector<std::vector<int>> event_fds_;
  std::thread thread_;
};

}  // namespace hvd
