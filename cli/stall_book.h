// Who waits for whom, out of the hosts' answers. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hostfile/topology.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd {

class StallBook {
 public:
  explicit StallBook(const Topology* topology) : topology_(topology) {}

  // A new question to all hosts: earlier answers are forgotten.
  void Begin();
  bool asking() const { return asking_; }
  void Answered(int host, const v1::HostPending& pending);
  // Whether all of `hosts` have answered.
  bool Complete(const std::vector<int>& hosts) const;

  struct Report {
    std::string text;     // empty: nobody is missing
    double waited_s = 0;  // the longest
  };
  // Ends the question. A host that has not answered is said so. Tensors that have waited for less
  // than `least_s` are left out.
  Report End(double least_s);

 private:
  struct Tensor {
    std::string what;
    double waited_s = 0;
    std::vector<int> have;     // ranks, sorted
    std::vector<int> members;  // sorted; empty: all
  };
  using Key = std::pair<int, std::string>;  // set, name

  std::map<Key, Tensor> Merge() const;
  std::vector<int> Missing(const Tensor& tensor) const;
  std::string Doing(int rank) const;

  const Topology* const topology_;
  bool asking_ = false;
  std::map<int, v1::HostPending> answers_;  // by host
};

}  // namespace hvd
