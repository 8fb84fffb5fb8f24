// SPDX-License-Identifier: Apache-2.0
// The hosts of a job that come and go: from the texts of looks at a script or a hostfile to the
// list that holds. Pure, the driver's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "hostfile/host_slots.h"

namespace hvd::cli {

struct HostBookRules {
  std::string source;      // its name in messages about a line
  int unstated_slots = 1;  // of a host for which none are stated
  // A hostfile, and no script: somebody may be writing it. Its text counts when two looks have seen
  // the same, and it never says that there are no hosts.
  bool is_file = false;
  // The source states no slots: each host keeps those of the list before the first look. One that
  // was not in it has as many as the largest there.
  bool has_planned_slots = false;
  std::function<bool(const HostSlots&)> is_local_host;
};

// The news that a look has brought.
struct HostNews {
  bool changed = false;  // hosts() is another list, or the first
  std::string said;      // for the person; empty: nothing
  std::string fatal;     // there was no list before, and there is none now
};

class HostBook {
 public:
  // `known`: the list before the first look; empty: none, and a first look that fails is fatal.
  HostBook(HostBookRules rules, std::vector<HostSlots> known);

  // A look that went well. A text that is no list of hosts changes nothing. An empty text of a
  // script means that there are no hosts now.
  HostNews Take(std::string_view text);
  // A look that failed; the list stays. Told once, and again only after it has gone well for long.
  HostNews Fail(const std::string& why);

  // In the order of their first appearance in this job, even if they were away meanwhile. No host
  // has more slots than it can have ranks.
  const std::vector<HostSlots>& hosts() const { return hosts_; }

 private:
  absl::StatusOr<std::vector<HostSlots>> Read(std::string_view text) const;
  HostNews Complain(const std::string& why);
  void TakePlannedSlots(std::vector<HostSlots>* hosts) const;
  void PutInOrder(std::vector<HostSlots>* hosts);

  const HostBookRules rules_;
  std::map<std::string, int> planned_;  // slots, by names in lower case
  int most_planned_ = 1;
  std::vector<HostSlots> hosts_;
  bool has_list_;
  std::map<std::string, uint64_t> appeared_;  // names in lower case → when
  std::string taken_;                         // the text of hosts_, once a look has brought one
  bool has_taken_ = false;
  std::string seen_;  // by the last look
  bool seen_any_ = false;
  int bad_looks_ = 0;  // in a row
  int good_looks_;     // in a row
};

}  // namespace hvd::cli
