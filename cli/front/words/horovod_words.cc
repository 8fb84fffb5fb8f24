// SPDX-License-Identifier: Apache-2.0
#include "cli/front/words/horovod_words.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/front/words/horovod_flags.h"

namespace hvd::cli {
namespace {

constexpr const char* kInterfaces = "--network-interfaces";

// An option of the command line; its value is empty where it takes none.
struct Mention {
  std::string name;
  bool has_value = false;
  std::string value;
};

std::vector<Mention> Mentions(absl::Span<const std::string> options,
                              absl::Span<const OptionSpelling> spellings) {
  std::vector<Mention> mentions;
  for (size_t at = 0; at < options.size(); ++at) {
    Mention mention{options[at], false, ""};
    const auto known = std::find_if(
        spellings.begin(), spellings.end(),
        [&](const OptionSpelling& spelling) { return spelling.canonical == mention.name; });
    mention.has_value = known != spellings.end() && known->takes_value && at + 1 < options.size();
    if (mention.has_value) mention.value = options[++at];
    mentions.push_back(std::move(mention));
  }
  return mentions;
}

// One line for each reason, in the order of first mention.
class Notes {
 public:
  void Add(const std::string& name, const std::string& why) {
    auto found = std::find_if(notes_.begin(), notes_.end(),
                              [&](const auto& note) { return note.first == why; });
    if (found == notes_.end()) found = notes_.insert(found, {why, {}});
    if (std::find(found->second.begin(), found->second.end(), name) == found->second.end())
      found->second.push_back(name);
  }
  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    for (const auto& [why, names] : notes_) {
      lines.push_back(absl::StrCat(absl::StrJoin(names, ", "), names.size() == 1 ? " has" : " have",
                                   " no effect: ", why));
    }
    return lines;
  }

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> notes_;
};

}  // namespace

absl::StatusOr<HorovodWords> TakeHorovod(absl::Span<const std::string> options,
                                         absl::Span<const OptionSpelling> spellings) {
  HorovodWords taken;
  Notes notes;
  std::vector<std::string> interfaces;
  for (Mention& mention : Mentions(options, spellings)) {
    const HorovodFlag* flag = FindHorovodFlag(mention.name);
    const HorovodFate fate = flag == nullptr ? HorovodFate::kOurs : flag->fate;
    switch (fate) {
      case HorovodFate::kOurs:
        if (mention.name == kInterfaces) {
          interfaces.push_back(std::move(mention.value));
          break;
        }
        taken.options.push_back(std::move(mention.name));
        if (mention.has_value) taken.options.push_back(std::move(mention.value));
        break;
      case HorovodFate::kConfig:
        taken.config_file = std::move(mention.value);
        break;
      case HorovodFate::kSetting:
        taken.settings.push_back(flag->words);
        break;
      case HorovodFate::kNote:
        notes.Add(mention.name, WordsOf(*flag));
        break;
    }
  }
  if (!interfaces.empty()) {
    taken.options.insert(taken.options.end(), {kInterfaces, absl::StrJoin(interfaces, ",")});
  }
  taken.notes = notes.Lines();
  return taken;
}

bool AsksForCompat(absl::Span<const std::string> args, absl::Span<const OptionSpelling> own) {
  std::vector<OptionSpelling> all(own.begin(), own.end());
  for (OptionSpelling& spelling : HorovodSpellings()) all.push_back(std::move(spelling));
  const auto words = NormaliseArgs(args, all);
  // Where some word is unknown anyway, this decides no more than which words it is compared with.
  const absl::Span<const std::string> options = words.ok() ? words->options : args;
  return std::any_of(options.begin(), options.end(), [](const std::string& word) {
    return word == "--compat" || absl::StartsWith(word, "--compat=");
  });
}

}  // namespace hvd::cli
