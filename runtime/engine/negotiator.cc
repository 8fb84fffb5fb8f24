#include "runtime/engine/negotiator.h"

#include <algorithm>

namespace hvd {

Negotiator::Negotiator(const Topology& topology) : topology_(topology) {}

std::vector<HostDecision> Negotiator::OnReport(int host, const OutboxEntry& report) {
  Open& open = open_[report.name];
  if (open.numbers.empty()) {
    open.numbers.resize(topology_.hosts().size());
    open.rows.resize(topology_.size());
  }
  if (open.numbers[host] != 0)
    return {};  // a second report before a decision: the host's own board forbids it
  open.numbers[host] = report.number;
  ++open.reported;
  std::copy(report.rows.begin(), report.rows.end(), open.rows.begin() + topology_.first_rank(host));
  if (!open.first) open.first = report.first;
  if (!open.other && !Compatible(open.first->signature, report.first.signature)) {
    open.other = report.first;
  }
  if (!open.other && report.other) open.other = report.other;
  if (open.reported < static_cast<int>(topology_.hosts().size())) return {};
  std::vector<HostDecision> decisions = Decide(report.name, open);
  open_.erase(report.name);
  return decisions;
}

std::vector<HostDecision> Negotiator::Decide(const std::string& name, const Open& open) const {
  LogEntry entry;
  entry.signature = open.first->signature;
  entry.contributors = topology_.size();
  if (open.other) {
    entry.error = MismatchText(name, *open.first, *open.other);
  } else if (open.first->signature.kind == RequestKind::kAllgather) {
    entry.rows = open.rows;
  }
  std::vector<HostDecision> decisions;
  for (size_t host = 0; host < open.numbers.size(); ++host) {
    decisions.push_back({static_cast<int>(host), entry});
    decisions.back().entry.number = open.numbers[host];
  }
  return decisions;
}

}  // namespace hvd
