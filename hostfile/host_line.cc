// SPDX-License-Identifier: Apache-2.0
// A hostfile's line: the item and its key=value pairs.
#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/nearest.h"
#include "hostfile/foreign_forms.h"
#include "hostfile/host_item.h"
#include "hostfile/number.h"

namespace hvd {
namespace {

constexpr absl::string_view kBlanks = " \t\v\f";
constexpr int kMaxPort = 65535;

enum class Field { kSlots, kMaxSlots, kPort, kUser };
struct Key {
  absl::string_view name;
  Field field;
};
constexpr std::array<Key, 9> kKeys = {{
    {"slots", Field::kSlots},
    {"cpu", Field::kSlots},
    {"count", Field::kSlots},
    {"max_slots", Field::kMaxSlots},
    {"max-slots", Field::kMaxSlots},
    {"slots_max", Field::kMaxSlots},
    {"slots-max", Field::kMaxSlots},
    {"port", Field::kPort},
    {"user", Field::kUser},
}};

struct Pair {
  absl::string_view key;
  absl::string_view value;
};

absl::string_view TakeWord(absl::string_view* rest, absl::string_view ends) {
  const absl::string_view word = rest->substr(0, rest->find_first_of(ends));
  rest->remove_prefix(word.size());
  return word;
}

void SkipBlanks(absl::string_view* rest) {
  rest->remove_prefix(std::min(rest->find_first_not_of(kBlanks), rest->size()));
}

// `behind` is what follows the word.
absl::Status NotAPair(const SourceLine& line, absl::string_view word, absl::string_view behind) {
  const bool number = word.find_first_not_of("0123456789") == absl::string_view::npos;
  const size_t colon = word.find(':');
  std::string hint = "every host has a line of its own: host1 slots=4";
  if (number) hint = absl::StrCat("write slots=", word);
  if (colon != absl::string_view::npos && word.substr(0, colon) == "slots") {
    hint = absl::StrCat("write slots=", word.substr(colon + 1));
  }
  if (absl::EqualsIgnoreCase(word, "slots") && !behind.empty()) {
    hint = absl::StrCat("write slots=", TakeWord(&behind, kBlanks));
  }
  return line.ErrorAt(word, "after the host come pairs like slots=4", hint);
}

// "key=value" at the front of `rest`; Open MPI allows blanks around the '='.
absl::StatusOr<Pair> TakePair(const SourceLine& line, absl::string_view* rest) {
  static constexpr absl::string_view kKeyEnds = " \t\v\f=";
  Pair pair;
  pair.key = TakeWord(rest, kKeyEnds);
  SkipBlanks(rest);
  if (rest->empty() || rest->front() != '=') return NotAPair(line, pair.key, *rest);
  rest->remove_prefix(1);
  SkipBlanks(rest);
  pair.value = TakeWord(rest, kBlanks);
  return pair;
}

absl::StatusOr<Field> FindField(const SourceLine& line, absl::string_view word) {
  std::vector<absl::string_view> names;
  for (const Key& key : kKeys) {
    if (absl::EqualsIgnoreCase(key.name, word)) return key.field;
    names.push_back(key.name);
  }
  const absl::string_view advice = AdviceForKey(word);
  const absl::string_view nearest = Nearest(word, names);
  return line.ErrorAt(word, absl::StrCat("unknown key ", Quoted(word)),
                      !advice.empty()    ? std::string(advice)
                      : !nearest.empty() ? absl::StrCat("did you mean ", nearest, "=?")
                                         : "known are slots, max_slots, port and user");
}

absl::Status SetNumber(const SourceLine& line, const Pair& pair, NumberRule rule, int* field) {
  if (*field != 0) {
    return line.ErrorAt(pair.key, absl::StrCat("the ", rule.what, " of this host stand here twice"),
                        "keep one of the two");
  }
  const absl::StatusOr<int> number = ParseNumber(line, pair.value, rule);
  if (!number.ok()) return number.status();
  *field = *number;
  return absl::OkStatus();
}

absl::Status SetUser(const SourceLine& line, const Pair& pair, HostItem* item) {
  if (!item->user.empty()) {
    return line.ErrorAt(pair.key, "the user of this host stands here twice", "keep one of the two");
  }
  absl::Status status = CheckUser(line, pair.value);
  if (!status.ok()) return status;
  item->user = std::string(pair.value);
  return absl::OkStatus();
}

absl::Status SetField(const SourceLine& line, const Pair& pair, HostItem* item) {
  const absl::StatusOr<Field> field = FindField(line, pair.key);
  if (!field.ok()) return field.status();
  switch (*field) {
    case Field::kSlots:
      return SetNumber(line, pair, {"slots", kMaxRanks}, &item->slots);
    case Field::kMaxSlots:
      return SetNumber(line, pair, {"max_slots", kMaxRanks}, &item->max_slots);
    case Field::kPort:
      return SetNumber(line, pair, {"port", kMaxPort}, &item->port);
    case Field::kUser:
      return SetUser(line, pair, item);
  }
  return absl::InternalError("unreachable");
}

}  // namespace

absl::StatusOr<HostItem> ParseHostLine(const SourceLine& line) {
  absl::string_view rest = line.text();
  SkipBlanks(&rest);
  absl::StatusOr<HostItem> item = ParseHostItem(line, TakeWord(&rest, kBlanks));
  if (!item.ok()) return item;
  for (SkipBlanks(&rest); !rest.empty(); SkipBlanks(&rest)) {
    const absl::StatusOr<Pair> pair = TakePair(line, &rest);
    if (!pair.ok()) return pair.status();
    if (absl::Status status = SetField(line, *pair, &*item); !status.ok()) return status;
  }
  return item;
}

}  // namespace hvd
