// SPDX-License-Identifier: Apache-2.0
#include "hostfile/nodeset.h"

#include <cstdint>
#include <unordered_set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hvd {
namespace {

// Host names number their hosts with fewer digits than this; it keeps sums far from overflow.
constexpr size_t kMaxDigits = 15;

bool IsDigits(absl::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos;
}

// Cuts `text` at the first `separator`; true when there was one.
bool Cut(absl::string_view* text, char separator, absl::string_view* head) {
  const size_t at = text->find(separator);
  *head = text->substr(0, at);
  text->remove_prefix(at == absl::string_view::npos ? text->size() : at + 1);
  return at != absl::string_view::npos;
}

absl::Status TooMany(const SourceLine& line, absl::string_view piece) {
  return line.ErrorAt(piece, absl::StrCat("this stands for more than ", kMaxHosts, " hosts"),
                      "write a smaller range");
}

// One piece between commas: "7", "1-4", "01-20/2". A missing step is 1.
class Range {
 public:
  static absl::StatusOr<Range> Parse(const SourceLine& line, absl::string_view piece);

  uint64_t count() const { return (last_ - first_) / step_ + 1; }
  std::string Text(uint64_t index) const {
    return absl::StrFormat("%0*d", width_, first_ + index * step_);
  }

 private:
  int width_ = 0;  // digits of a zero-padded range; 0: not padded
  uint64_t first_ = 0;
  uint64_t last_ = 0;
  uint64_t step_ = 1;
};

absl::Status CheckNumber(const SourceLine& line, absl::string_view piece,
                         absl::string_view number) {
  // An empty number has no byte of its own to point at.
  if (number.empty()) {
    return line.ErrorAt(piece, "a number is missing in this range", "write [1-4] or [1,3]");
  }
  if (!IsDigits(number)) {
    return line.ErrorAt(number, absl::StrCat(Quoted(number), " is not a number"),
                        "between brackets stand numbers and ranges: [1-4,7]");
  }
  if (number.size() > kMaxDigits) {
    return line.ErrorAt(number, "this number is too long", "");
  }
  return absl::OkStatus();
}

absl::StatusOr<Range> Range::Parse(const SourceLine& line, absl::string_view piece) {
  absl::string_view rest = piece, ends, first, step;
  const bool has_step = Cut(&rest, '/', &ends);
  step = rest;
  rest = ends;
  const bool has_last = Cut(&rest, '-', &first);
  const absl::string_view last = has_last ? rest : first;
  for (const absl::string_view number : {first, last, has_step ? step : first}) {
    if (absl::Status status = CheckNumber(line, piece, number); !status.ok()) return status;
  }
  Range range;
  if (!absl::SimpleAtoi(first, &range.first_) || !absl::SimpleAtoi(last, &range.last_) ||
      (has_step && !absl::SimpleAtoi(step, &range.step_))) {
    return line.ErrorAt(piece, "this range cannot be read", "");
  }
  if (range.step_ == 0) return line.ErrorAt(step, "the step must be at least 1", "");
  if (range.last_ < range.first_) {
    return line.ErrorAt(first, "this range runs backwards",
                        absl::StrCat("write ", last, "-", first));
  }
  if (last.size() > 1 && last[0] == '0' && last.size() != first.size()) {
    return line.ErrorAt(last, "both ends of a zero-padded range need the same number of digits",
                        "write [01-04] or [1-4]");
  }
  if (first.size() > 1 && first[0] == '0') range.width_ = static_cast<int>(first.size());
  return range;
}

// "1-4,7" → {"1", "2", "3", "4", "7"}
absl::StatusOr<std::vector<std::string>> ExpandBracket(const SourceLine& line,
                                                       absl::string_view inside) {
  std::vector<std::string> texts;
  absl::string_view rest = inside, piece;
  bool more = true;
  while (more) {
    more = Cut(&rest, ',', &piece);
    if (piece.empty()) {
      return line.ErrorAt(piece, "a number is missing in these brackets", "write [1-4,7]");
    }
    const absl::StatusOr<Range> range = Range::Parse(line, piece);
    if (!range.ok()) return range.status();
    if (range->count() + texts.size() > kMaxHosts) return TooMany(line, piece);
    for (uint64_t index = 0; index < range->count(); ++index) texts.push_back(range->Text(index));
  }
  return texts;
}

// Every name followed by every text.
std::vector<std::string> Combine(const std::vector<std::string>& names,
                                 const std::vector<std::string>& texts) {
  std::vector<std::string> combined;
  combined.reserve(names.size() * texts.size());
  for (const std::string& name : names) {
    for (const std::string& text : texts) combined.push_back(name + text);
  }
  return combined;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandNodeset(const SourceLine& line,
                                                       absl::string_view name) {
  std::vector<std::string> names = {""};
  absl::string_view rest = name;
  size_t length = 0;
  while (!rest.empty()) {
    const size_t open = rest.find_first_of("[]");
    const absl::string_view plain = rest.substr(0, open);
    length += plain.size();
    if (length > kMaxNameLength) return line.ErrorAt(name, "this host name is too long", "");
    for (std::string& known : names) absl::StrAppend(&known, plain);
    if (open == absl::string_view::npos) break;
    rest.remove_prefix(open);
    if (rest.front() == ']') return line.ErrorAt(rest, "this ] closes nothing", "");
    const size_t close = rest.find(']');
    if (close == absl::string_view::npos) {
      return line.ErrorAt(rest.substr(rest.size()), "a ] is missing here",
                          "write node[1-4], and the slots behind it: node[1-4]:2");
    }
    const auto texts = ExpandBracket(line, rest.substr(1, close - 1));
    if (!texts.ok()) return texts.status();
    if (texts->size() * names.size() > kMaxHosts) return TooMany(line, rest);
    names = Combine(names, *texts);
    rest.remove_prefix(close + 1);
  }
  // A nodeset is a set: [1-3,2] names host 2 once.
  std::unordered_set<std::string> seen;
  std::erase_if(names, [&](const std::string& known) { return !seen.insert(known).second; });
  return names;
}

}  // namespace hvd
