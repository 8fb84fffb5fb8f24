// SPDX-License-Identifier: Apache-2.0
#include "cli/front/words/argv_normaliser.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/nearest.h"
#include "base/source_error.h"
#include "cli/front/words/foreign_options.h"
#include "cli/front/words/horovod_flags.h"

namespace hvd::cli {
namespace {

const OptionSpelling* Find(absl::Span<const OptionSpelling> spellings, absl::string_view word) {
  const auto found = std::find_if(spellings.begin(), spellings.end(),
                                  [&](const OptionSpelling& known) { return known.typed == word; });
  return found == spellings.end() ? nullptr : &*found;
}

// An option's name and the value that is joined to it, if there is one.
struct Word {
  const OptionSpelling* option = nullptr;
  bool has_value = false;
  std::string value;
};

// "-n4", "-p2222": only where the value is a number, so that "-Hosts" stays a typo.
Word SplitShort(absl::Span<const OptionSpelling> spellings, const std::string& word) {
  const bool digits = word.size() > 2 && word[1] != '-' &&
                      word.find_first_not_of("0123456789", 2) == std::string::npos;
  const OptionSpelling* option = digits ? Find(spellings, word.substr(0, 2)) : nullptr;
  if (option == nullptr || !option->is_number) return {};
  return {option, true, word.substr(2)};
}

Word Split(absl::Span<const OptionSpelling> spellings, const std::string& word) {
  if (const OptionSpelling* option = Find(spellings, word)) return {option, false, ""};
  const size_t equals = word.find('=');
  if (equals == std::string::npos) return SplitShort(spellings, word);
  return {Find(spellings, word.substr(0, equals)), true, word.substr(equals + 1)};
}

// The option that the word begins ("--contain"), or else the one that it may be a typo of; empty
// when none is near.
absl::string_view Meant(absl::Span<const OptionSpelling> spellings, const std::string& name) {
  static constexpr size_t kLeastPrefix = 4;
  static constexpr size_t kOneLetter = 2;
  std::vector<absl::string_view> known;
  for (const OptionSpelling& spelling : spellings) {
    if (name.size() >= kLeastPrefix && absl::StartsWith(spelling.typed, name))
      return spelling.typed;
    // Any letter is near any other.
    if (name.size() <= kOneLetter && !absl::EqualsIgnoreCase(name, spelling.typed)) continue;
    known.push_back(spelling.typed);
  }
  return Nearest(name, known);
}

absl::Status OfHorovod(const std::string& name, const HorovodFlag& flag) {
  return absl::InvalidArgumentError(absl::StrCat(
      name, " is Horovod's; hvdrun takes it with --compat horovod",
      flag.fate == HorovodFate::kNote ? absl::StrCat(", to no effect: ", WordsOf(flag)) : ""));
}

absl::Status UnknownOption(absl::Span<const OptionSpelling> spellings, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  if (const HorovodFlag* flag = FindHorovodFlag(name)) return OfHorovod(name, *flag);
  // "-np4": only the options of one letter take a number without a blank.
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  const OptionSpelling* counted = Find(spellings, name.substr(0, digits));
  const std::string nearest = counted != nullptr && counted->is_number && digits < name.size()
                                  ? absl::StrCat(counted->typed, " ", name.substr(digits))
                                  : std::string(Meant(spellings, name));
  const absl::string_view advice = AdviceFor(name);
  return absl::InvalidArgumentError(absl::StrCat("unknown option ", Quoted(name), "; ",
                                                 !advice.empty() ? std::string(advice)
                                                 : !nearest.empty()
                                                     ? absl::StrCat("did you mean ", nearest, "?")
                                                     : "hvdrun --help lists them"));
}

// Where an option's value is looked for.
struct ValueSource {
  absl::Span<const std::string> args;
  absl::Span<const OptionSpelling> spellings;
};

absl::Status EmptyValue(const OptionSpelling& option) {
  return absl::InvalidArgumentError(absl::StrCat("the value of ", option.typed, " is empty"));
}

// The word after the one at `at`, which moves on.
absl::Status TakeValue(const ValueSource& source, const OptionSpelling& option, size_t* at,
                       std::string* value) {
  const size_t next = *at + 1;
  if (next == source.args.size() || Find(source.spellings, source.args[next]) != nullptr ||
      source.args[next] == "--") {
    return absl::InvalidArgumentError(
        option.takes_pair ? absl::StrCat(option.typed, " takes two values, and one is missing")
                          : absl::StrCat("the value of ", option.typed, " is missing"));
  }
  *value = source.args[*at = next];
  return value->empty() ? EmptyValue(option) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<NormalisedArgs> NormaliseArgs(absl::Span<const std::string> args,
                                             absl::Span<const OptionSpelling> spellings) {
  NormalisedArgs result;
  size_t at = 0;
  for (; at < args.size() && absl::StartsWith(args[at], "-"); ++at) {
    if (args[at] == "--") {
      ++at;
      break;
    }
    Word word = Split(spellings, args[at]);
    if (word.option == nullptr) return UnknownOption(spellings, args[at]);
    const OptionSpelling& option = *word.option;
    if (word.has_value && !option.takes_value) {
      return absl::InvalidArgumentError(absl::StrCat(option.typed, " takes no value"));
    }
    result.options.push_back(option.canonical);
    if (!option.takes_value) continue;
    const ValueSource source{args, spellings};
    absl::Status status;
    if (!word.has_value) status = TakeValue(source, option, &at, &word.value);
    // No option has a use for an empty value, and an empty variable in a script is easily typed.
    if (status.ok() && word.value.empty()) status = EmptyValue(option);
    if (status.ok() && option.takes_pair) {
      std::string second;
      status = TakeValue(source, option, &at, &second);
      absl::StrAppend(&word.value, " ", second);
    }
    if (!status.ok()) return status;
    result.options.push_back(std::move(word.value));
  }
  result.command.assign(args.begin() + at, args.end());
  return result;
}

}  // namespace hvd::cli
