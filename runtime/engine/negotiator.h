// The root's part of agreement in a job of several hosts: counts reports by name, checks that all
// hosts ask for the same, and decides. Pure: reports in, decisions out; it sends nothing and waits
// for nothing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hostfile/topology.h"
#include "runtime/engine/board.h"

namespace hvd {

// What one host's leader has to append to its log.
struct HostDecision {
  int host = 0;
  LogEntry entry;  // numbered as that host numbers the name
};

class Negotiator {
 public:
  explicit Negotiator(const Topology& topology);

  // A host reports an entry that all its ranks have marked. When it is the last host, returns one
  // decision a host, in host order; else nothing.
  std::vector<HostDecision> OnReport(int host, const OutboxEntry& report);

  // Names that some hosts have reported and others not: what a stalled job waits for.
  size_t open() const { return open_.size(); }

 private:
  struct Open {
    std::vector<uint32_t> numbers;  // by host; 0: not reported
    int reported = 0;
    std::optional<Asker> first, other;
    std::vector<int64_t> rows;  // by global rank
  };
  std::vector<HostDecision> Decide(const std::string& name, const Open& open) const;

  const Topology topology_;
  std::map<std::string, Open> open_;
};

}  // namespace hvd
