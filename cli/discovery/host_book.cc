// SPDX-License-Identifier: Apache-2.0
#include "cli/discovery/host_book.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/front/own_names.h"
#include "proto/page/host_page.h"

namespace hvd::cli {
namespace {

// After so many good looks in a row, a fault is news again.
constexpr int kQuietLooks = 60;

bool SameHost(const HostSlots& one, const HostSlots& other) {
  return one.name == other.name && one.user == other.user && one.port == other.port &&
         one.slots == other.slots;
}

// "host:0": schedulers print hosts that have nothing free. An empty line in its place leaves the
// others' numbers.
std::string WithoutFullHosts(std::string_view text) {
  std::vector<std::string> lines = absl::StrSplit(std::string(text), '\n');
  for (std::string& line : lines) {
    absl::string_view words = absl::StripAsciiWhitespace(line);
    const bool is_full = absl::ConsumeSuffix(&words, ":0");
    if (is_full && !words.empty() && words.find_first_of(" \t#,:") == words.npos) line.clear();
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace

HostBook::HostBook(HostBookRules rules, std::vector<HostSlots> known)
    : rules_(std::move(rules)),
      hosts_(std::move(known)),
      has_list_(!hosts_.empty()),
      good_looks_(kQuietLooks) {
  for (const HostSlots& host : hosts_) {
    planned_[absl::AsciiStrToLower(host.name)] = host.slots;
    most_planned_ = std::max(most_planned_, host.slots);
  }
  PutInOrder(&hosts_);
}

HostNews HostBook::Take(std::string_view text) {
  if (has_taken_ && text == taken_) {
    seen_ = taken_;
    bad_looks_ = 0;
    ++good_looks_;
    return {};
  }
  const bool again = seen_any_ && text == seen_;
  seen_ = std::string(text);
  seen_any_ = true;
  if (rules_.is_file && !again) return {};
  absl::StatusOr<std::vector<HostSlots>> read = Read(text);
  if (!read.ok()) return Complain(std::string(read.status().message()));
  bad_looks_ = 0;
  ++good_looks_;
  taken_ = seen_;
  has_taken_ = true;
  PutInOrder(&*read);
  HostNews news;
  news.changed =
      !has_list_ || !std::equal(hosts_.begin(), hosts_.end(), read->begin(), read->end(), SameHost);
  has_list_ = true;
  hosts_ = *std::move(read);
  return news;
}

HostNews HostBook::Fail(const std::string& why) {
  seen_any_ = false;
  ++bad_looks_;
  // A file that is replaced is away for a moment.
  if (rules_.is_file && has_list_ && bad_looks_ == 1) return {};
  return Complain(why);
}

absl::StatusOr<std::vector<HostSlots>> HostBook::Read(std::string_view text) const {
  auto hosts = ParseHostfile(rules_.is_file ? std::string(text) : WithoutFullHosts(text),
                             rules_.source, rules_.unstated_slots);
  if (absl::IsNotFound(hosts.status()) && !rules_.is_file) return std::vector<HostSlots>();
  if (!hosts.ok()) return hosts.status();
  if (rules_.has_planned_slots) TakePlannedSlots(&*hosts);
  const auto merged = MergeOwnNames(rules_.is_local_host, &*hosts);
  if (!merged.ok()) return merged.status();
  return hosts;
}

void HostBook::TakePlannedSlots(std::vector<HostSlots>* hosts) const {
  for (HostSlots& host : *hosts) {
    const auto planned = planned_.find(absl::AsciiStrToLower(host.name));
    host.slots = planned == planned_.end() ? most_planned_ : planned->second;
  }
}

HostNews HostBook::Complain(const std::string& why) {
  HostNews news;
  if (!has_list_) {
    news.fatal = why;
    return news;
  }
  if (good_looks_ >= kQuietLooks) news.said = absl::StrCat(why, "\n  the hosts stay as they were");
  good_looks_ = 0;
  return news;
}

void HostBook::PutInOrder(std::vector<HostSlots>* hosts) {
  std::vector<std::pair<uint64_t, HostSlots>> ordered;
  for (HostSlots& host : *hosts) {
    host.slots = std::min(host.slots, kMaxLocalRanks);
    const auto [entry, is_new] =
        appeared_.emplace(absl::AsciiStrToLower(host.name), appeared_.size());
    ordered.emplace_back(entry->second, std::move(host));
  }
  std::sort(ordered.begin(), ordered.end(),
            [](const auto& one, const auto& other) { return one.first < other.first; });
  hosts->clear();
  for (auto& entry : ordered) hosts->push_back(std::move(entry.second));
}

}  // namespace hvd::cli
