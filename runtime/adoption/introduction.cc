// SPDX-License-Identifier: Apache-2.0
#include "runtime/adoption/introduction.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "hostfile/topology.h"

namespace hvd::rt {
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

// The hosts of what ranks say of themselves, rank after rank.
class HostsSaid {
 public:
  // The host of the rank that says this, as an index; the first that says so makes it. Nothing:
  // that cannot be told, since no host can be told from others of its name.
  std::optional<size_t> Find(const Introduction& said, std::vector<AdoptedHost>* hosts) {
    if (said.identity != kNone) {
      const auto [found, is_new] = by_identity_.try_emplace(said.identity, hosts->size());
      if (is_new) Add(said, hosts);
      return found->second;
    }
    if (missing_.empty()) {
      open_ = said;
      for (int local = 0; local < said.local_size; ++local) missing_.insert(local);
      at_ = hosts->size();
      Add(said, hosts);
    }
    const bool fits = said.host == open_.host && said.local_size == open_.local_size;
    if (!fits || missing_.erase(said.local_rank) == 0) return std::nullopt;
    return at_;
  }
  bool all_came() const { return missing_.empty(); }

 private:
  static void Add(const Introduction& said, std::vector<AdoptedHost>* hosts) {
    hosts->push_back({FreeName(*hosts, said.host), 0, 0, "", {}});
  }

  std::map<std::string, size_t> by_identity_;
  // The host without identity, whose ranks must be neighbours: its first rank, and the local ranks
  // that are still to come.
  Introduction open_;
  std::set<int> missing_;
  size_t at_ = 0;
};

absl::Status NotByHost(const std::string& by, size_t rank) {
  return absl::FailedPreconditionError(absl::StrCat(
      by, " numbers its processes in turn over the hosts (rank ", rank,
      "), and these cannot be told from one another (no /proc/sys/kernel/random/boot_id); use its "
      "default (mpirun: --map-by slot), or start the program by hvdrun"));
}

// How many ranks the hosts have, and which.
void PlaceRanks(absl::Span<const int> host_of_rank, std::vector<AdoptedHost>* hosts) {
  std::vector<std::string> names;
  names.reserve(hosts->size());
  for (const AdoptedHost& host : *hosts) names.push_back(host.name);
  const Topology topology = Topology::Numbered(names, host_of_rank);
  for (size_t host = 0; host < hosts->size(); ++host) {
    (*hosts)[host].ranks = topology.hosts()[host].ranks;
    (*hosts)[host].numbers = topology.hosts()[host].numbers;
  }
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
  HostsSaid hosts;
  std::vector<int> host_of_rank;
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    std::optional<Introduction> said = Parse(texts[rank]);
    if (!said.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("rank ", rank, " of ", by,
                       " says what this version of hvd does not understand; does every host have "
                       "the same version?"));
    }
    if (rank == 0) adoption.key = said->key;
    const std::optional<size_t> at = hosts.Find(*said, &adoption.hosts);
    if (!at.has_value()) return NotByHost(by, rank);
    AdoptedHost& host = adoption.hosts[*at];
    host_of_rank.push_back(static_cast<int>(*at));
    if (said->local_rank == 0 && *at > 0 && host.port == 0) {
      host.port = said->daemon.port;
      host.secret = std::move(said->daemon.secret);
      host.addresses = std::move(said->daemon.addresses);
    }
  }
  if (!hosts.all_came() || adoption.hosts.empty()) return NotByHost(by, texts.size());
  PlaceRanks(host_of_rank, &adoption.hosts);
  return adoption;
}

}  // namespace hvd::rt
