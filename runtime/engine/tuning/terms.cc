// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/tuning/terms.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/stable_hash.h"
#include "proto/wire.h"

namespace hvd::rt {
namespace {

enum { kAddress = 1, kValue = 2 };

// Settings that are named at most: the message must fit where hvdd finds it.
constexpr size_t kMostNamed = 4;

struct Card {
  std::string address;
  std::vector<std::string> values;
};

// Nothing: it does not parse.
std::optional<Card> ParseCard(std::string_view bytes) {
  Card card;
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == kAddress) card.address = std::string(reader.bytes());
    if (reader.field() == kValue) card.values.emplace_back(reader.bytes());
  }
  if (!reader.ok()) return std::nullopt;
  return card;
}

std::string RankOn(const Topology& topology, size_t rank) {
  const int host = topology.place(static_cast<int>(rank)).host;
  return absl::StrCat("rank ", rank, " (host ", topology.hosts()[host].name, ")");
}

uint64_t Hash(std::string_view text) { return StableHash().Add(text).value(); }

// Says how term `t` differs between rank 0 and the first rank that has another value; nothing if
// all have the same.
std::string Difference(const std::vector<Card>& cards, const Topology& topology, const Term& term,
                       size_t t) {
  const auto value = [&](size_t rank) {
    return t < cards[rank].values.size() ? cards[rank].values[t] : std::string("not known");
  };
  for (size_t rank = 1; rank < cards.size(); ++rank) {
    if (value(rank) == value(0)) continue;
    return absl::StrCat(term.name, " is ", value(0), " on ", RankOn(topology, 0), " and ",
                        value(rank), " on ", RankOn(topology, rank), ": ", term.advice);
  }
  return "";
}

std::string DescribeDifferences(const std::vector<Card>& cards, const Topology& topology,
                                absl::Span<const Term> terms) {
  std::vector<std::string> differences;
  for (size_t t = 0; t < terms.size(); ++t) {
    std::string difference = Difference(cards, topology, terms[t], t);
    if (difference.empty()) continue;
    if (t == 0) return difference;  // then the rest are not the same terms
    differences.push_back(std::move(difference));
  }
  const size_t more = differences.size() - std::min(differences.size(), kMostNamed);
  if (more > 0) {
    differences.resize(kMostNamed);
    differences.push_back(
        absl::StrCat("and ", more, more == 1 ? " setting" : " settings", " more"));
  }
  return absl::StrJoin(differences, "; ");
}

}  // namespace

Term ProcessSetsTerm(const std::vector<std::vector<int32_t>>& sets) {
  constexpr size_t kMostShown = 60;
  std::vector<std::string> each;
  for (std::vector<int32_t> ranks : sets) {
    std::sort(ranks.begin(), ranks.end());  // their order means nothing
    each.push_back(absl::StrCat("{", absl::StrJoin(ranks, ","), "}"));
  }
  std::string text = each.empty() ? "none" : absl::StrJoin(each, " ");
  if (text.size() > kMostShown) {
    text = absl::StrCat(text.substr(0, kMostShown), "... (", each.size(), " of them, checksum ",
                        absl::Hex(Hash(text) >> 32), ")");
  }
  return {"what hvd_init is given for process_sets", std::move(text),
          "give it the same on all ranks"};
}

std::string WriteCard(std::string_view address, absl::Span<const Term> terms) {
  WireWriter card;
  card.Bytes(kAddress, address);
  for (const Term& term : terms) card.Bytes(kValue, term.value);
  return card.bytes();
}

absl::StatusOr<std::vector<std::string>> ReadCards(const std::vector<std::string>& cards,
                                                   const Topology& topology,
                                                   absl::Span<const Term> mine) {
  std::vector<Card> parsed;
  for (const std::string& bytes : cards) {
    std::optional<Card> card = ParseCard(bytes);
    if (!card) {
      return absl::FailedPreconditionError(
          absl::StrCat(RankOn(topology, parsed.size()),
                       " has another libhvd than this one: use the same on all hosts"));
    }
    parsed.push_back(*std::move(card));
  }
  std::string differences = DescribeDifferences(parsed, topology, mine);
  if (!differences.empty()) return absl::FailedPreconditionError(std::move(differences));
  std::vector<std::string> addresses;
  for (Card& card : parsed) addresses.push_back(std::move(card.address));
  return addresses;
}

}  // namespace hvd::rt
