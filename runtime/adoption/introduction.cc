// SPDX-License-Identifier: Apache-2.0
#include "runtime/adoption/introduction.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hvd {
namespace {

constexpr absl::string_view kBegin = "hvd1";
constexpr absl::string_view kNone = "-";
constexpr size_t kMostHostName = 64;  // a store's values are short

bool ReadNumber(const std::string& text, int* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && *number >= 0;
}

std::string Given(const std::string& word) { return word.empty() ? std::string(kNone) : word; }
std::string Taken(const std::string& word) { return word == kNone ? "" : word; }

std::optional<Introduction> Parse(const std::string& text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  Introduction read;
  if (words.size() != 9 || words[0] != kBegin) return std::nullopt;
  const std::string& addresses = words[7];
  if (!IsAdoptionWord(words[8]) ||
      !std::all_of(words.begin() + 1, words.begin() + 7, IsAdoptionWord)) {
    return std::nullopt;
  }
  read.host = words[1];
  read.identity = words[8];
  if (!ReadNumber(words[2], &read.local_rank) || !ReadNumber(words[3], &read.local_size) ||
      !ReadNumber(words[5], &read.daemon.port)) {
    return std::nullopt;
  }
  read.key = Taken(words[4]);
  read.daemon.secret = Taken(words[6]);
  if (addresses == kNone) return read;
  for (const absl::string_view address : absl::StrSplit(addresses, ',')) {
    read.daemon.addresses.emplace_back(address);
  }
  return read;
}

// Another host may have the same name, as containers do.
std::string FreeName(const std::vector<AdoptedHost>& hosts, const std::string& wanted) {
  std::string name = wanted;
  const auto is_taken = [&name](const AdoptedHost& host) { return host.name == name; };
  for (int copy = 2; std::any_of(hosts.begin(), hosts.end(), is_taken); ++copy) {
    name = absl::StrCat(wanted, "+", copy);
  }
  return name;
}

void AddHost(const Introduction& said, bool is_new, std::vector<AdoptedHost>* hosts) {
  if (is_new) hosts->push_back({FreeName(*hosts, said.host), 0, 0, "", {}});
  hosts->back().ranks += said.local_size;
}

absl::Status NotByHost(const std::string& by, size_t rank) {
  return absl::FailedPreconditionError(absl::StrCat(
      by, " numbers its processes in turn over the hosts (rank ", rank,
      "), where hvd numbers them host by host; use its default (mpirun: --map-by slot), or start "
      "the program by hvdrun"));
}

}  // namespace

std::string FormatIntroduction(const Introduction& said) {
  std::string addresses;
  for (const std::string& address : said.daemon.addresses) {
    absl::StrAppend(&addresses, addresses.empty() ? "" : ",", address);
  }
  return absl::StrCat(kBegin, " ", Given(said.host.substr(0, kMostHostName)), " ", said.local_rank,
                      " ", said.local_size, " ", Given(said.key), " ", said.daemon.port, " ",
                      Given(said.daemon.secret), " ", Given(addresses), " ", Given(said.identity));
}

absl::StatusOr<Adoption> GatherAdoption(const std::string& by,
                                        const std::vector<std::string>& texts) {
  Adoption adoption;
  adoption.by = by;
  std::set<int> missing;  // local ranks of the last host that are still to come
  Introduction host;      // the first one of these
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    std::optional<Introduction> said = Parse(texts[rank]);
    if (!said.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("rank ", rank, " of ", by,
                       " says what this version of hvd does not understand; does every host have "
                       "the same version?"));
    }
    if (rank == 0) adoption.key = said->key;
    if (missing.empty()) {
      const bool same = rank > 0 && said->identity == host.identity && said->identity != kNone;
      AddHost(*said, !same, &adoption.hosts);
      host = *said;
      for (int local = 0; local < said->local_size; ++local) missing.insert(local);
    }
    const bool fits = said->host == host.host && said->local_size == host.local_size;
    if (!fits || missing.erase(said->local_rank) == 0) return NotByHost(by, rank);
    AdoptedHost& last = adoption.hosts.back();
    if (said->local_rank == 0 && adoption.hosts.size() > 1 && last.port == 0) {
      last.port = said->daemon.port;
      last.secret = std::move(said->daemon.secret);
      last.addresses = std::move(said->daemon.addresses);
    }
  }
  if (!missing.empty() || adoption.hosts.empty()) return NotByHost(by, texts.size());
  return adoption;
}

}  // namespace hvd
