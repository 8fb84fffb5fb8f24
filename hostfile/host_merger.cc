// SPDX-License-Identifier: Apache-2.0
#include "hostfile/host_merger.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "hostfile/nodeset.h"

namespace hvd {
namespace {

std::string Stated(const std::string& user) { return user.empty() ? "no user" : user; }
std::string Stated(int port) { return port == 0 ? "no port" : absl::StrCat(port); }

int Smaller(int a, int b) { return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b); }

}  // namespace

int HostMerger::SlotsOf(const HostItem& item) const {
  return item.slots != 0 ? item.slots : Smaller(unstated_, item.max_slots);
}

absl::Status HostMerger::Merge(const SourceLine& line, const HostItem& item, HostSlots* known) {
  const auto clash = [&](const auto& was, const auto& is, absl::string_view what) {
    return line.ErrorAt(
        item.word,
        absl::StrCat("host ", known->name, " has ", Stated(is), " here but ", Stated(was), " at ",
                     known->where),
        absl::StrCat("give a host the same ", what, " wherever it is mentioned, or another name"));
  };
  if (known->user != item.user) return clash(known->user, item.user, "user");
  if (known->port != item.port) return clash(known->port, item.port, "port");
  const int slots = known->slots + SlotsOf(item);
  const int max_slots = Smaller(known->max_slots, item.max_slots);
  const int most = Smaller(max_slots, kMaxRanks);
  if (slots > most) {
    return line.ErrorAt(
        item.word,
        absl::StrCat("with the slots of ", known->where, " host ", known->name, " has ", slots,
                     ", more than its ", max_slots == 0 ? "" : "max_slots of ", most),
        "mentions of a host add up; give it fewer slots here or there");
  }
  known->slots = slots;
  known->max_slots = max_slots;
  return absl::OkStatus();
}

absl::Status HostMerger::Add(const SourceLine& line, const HostItem& item,
                             const std::string& where) {
  const int slots = SlotsOf(item);
  if (item.max_slots != 0 && slots > item.max_slots) {
    return line.ErrorAt(
        item.word,
        absl::StrCat("slots (", slots, ") are more than max_slots (", item.max_slots, ")"), "");
  }
  for (const std::string& name : item.names) {
    const auto [entry, is_new] = index_.emplace(absl::AsciiStrToLower(name), hosts_.size());
    if (!is_new) {
      absl::Status status = Merge(line, item, &hosts_[entry->second]);
      if (!status.ok()) return status;
      continue;
    }
    if (hosts_.size() == kMaxHosts) {
      return line.ErrorAt(item.word, absl::StrCat("this is host number ", kMaxHosts + 1),
                          absl::StrCat("a job has at most ", kMaxHosts, " hosts"));
    }
    hosts_.push_back({name, item.user, item.port, slots, item.max_slots, where});
  }
  return absl::OkStatus();
}

}  // namespace hvd
