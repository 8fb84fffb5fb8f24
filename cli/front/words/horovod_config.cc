// SPDX-License-Identifier: Apache-2.0
#include "cli/front/words/horovod_config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "base/source_error.h"
#include "cli/front/words/horovod_flags.h"

namespace hvd::cli {
namespace {

bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// yaml-cpp counts bytes, people count characters.
int ColumnOf(absl::string_view line, int offset) {
  const absl::string_view before = line.substr(0, std::min<size_t>(offset, line.size()));
  return static_cast<int>(before.size() -
                          std::count_if(before.begin(), before.end(), IsContinuation)) +
         1;
}

class ConfigReader {
 public:
  ConfigReader(const std::string& text, const std::string& source)
      : lines_(absl::StrSplit(text, '\n')), source_(Printable(source)) {}

  absl::Status Read(const YAML::Node& root);
  absl::Status ErrorAt(const YAML::Mark& mark, absl::string_view message,
                       absl::string_view hint = "") const;
  std::vector<BorrowedOption> Take() { return std::move(options_); }

 private:
  struct Entry {
    std::string path;  // "params.cache_capacity"
    YAML::Node key, value;
  };
  absl::Status ReadSection(const Entry& section);
  absl::Status ReadEntry(const Entry& entry);
  absl::Status Unknown(const Entry& entry) const;
  absl::StatusOr<std::vector<std::string>> WordsFor(const HorovodFlag& flag,
                                                    const Entry& entry) const;
  absl::string_view LineOf(const YAML::Mark& mark) const;
  std::string PlaceOf(const YAML::Mark& mark) const {
    return absl::StrCat(source_, ":", mark.line + 1, ":", ColumnOf(LineOf(mark), mark.column));
  }
  std::string Show(const YAML::Mark& mark) const {
    return ShowWithCaret(LineOf(mark), std::min<size_t>(mark.column, LineOf(mark).size()));
  }

  const std::vector<std::string> lines_;
  const std::string source_;
  std::set<std::string> read_;
  std::vector<BorrowedOption> options_;
};

absl::string_view ConfigReader::LineOf(const YAML::Mark& mark) const {
  if (mark.line < 0 || static_cast<size_t>(mark.line) >= lines_.size()) return "";
  return absl::StripSuffix(lines_[mark.line], "\r");
}

absl::Status ConfigReader::ErrorAt(const YAML::Mark& mark, absl::string_view message,
                                   absl::string_view hint) const {
  return absl::InvalidArgumentError(absl::StrCat(PlaceOf(mark), ": ", message, "\n", Show(mark),
                                                 hint.empty() ? "" : "\n  ", hint));
}

absl::Status ConfigReader::Read(const YAML::Node& root) {
  if (!root.IsDefined() || root.IsNull()) return absl::OkStatus();
  if (!root.IsMap()) {
    return ErrorAt(root.Mark(), "the file must have sections", "for example params:");
  }
  for (const auto& pair : root) {
    const Entry section{pair.first.IsScalar() ? pair.first.Scalar() : "", pair.first, pair.second};
    if (absl::Status status = ReadSection(section); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ConfigReader::ReadSection(const Entry& section) {
  if (!section.value.IsMap()) return ReadEntry(section);
  for (const auto& pair : section.value) {
    const std::string name = pair.first.IsScalar() ? pair.first.Scalar() : "";
    const Entry entry{absl::StrCat(section.path, ".", name), pair.first, pair.second};
    if (absl::Status status = ReadEntry(entry); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ConfigReader::Unknown(const Entry& entry) const {
  std::vector<absl::string_view> keys;
  for (const HorovodFlag& flag : HorovodFlags()) {
    if (flag.key == nullptr) continue;
    keys.push_back(flag.key);
    if (absl::StartsWith(flag.key, entry.path + ".")) {
      if (entry.value.IsNull()) return absl::OkStatus();  // a section with nothing in it
      return ErrorAt(
          entry.key.Mark(), absl::StrCat(entry.path, " is a section"),
          absl::StrCat("for example ", entry.path, ": {",
                       absl::string_view(flag.key).substr(entry.path.size() + 1), ": ...}"));
    }
  }
  const absl::string_view meant = Nearest(entry.path, keys);
  return ErrorAt(entry.key.Mark(), absl::StrCat("unknown key ", Quoted(entry.path)),
                 meant.empty() ? "hvdrun --compat horovod --help lists the keys"
                               : absl::StrCat("did you mean ", meant, "?"));
}

absl::StatusOr<std::vector<std::string>> ConfigReader::WordsFor(const HorovodFlag& flag,
                                                                const Entry& entry) const {
  const std::string& text = entry.value.Scalar();
  const auto wrong = [&](absl::string_view what) {
    return ErrorAt(entry.value.Mark(),
                   absl::StrCat(entry.path, " must be ", what, ", not ", Quoted(text)));
  };
  if (entry.path == "controller") {
    if (text != "gloo" && text != "mpi") return wrong("gloo or mpi");
    return std::vector<std::string>{"--" + text};
  }
  if (flag.values > 0) return std::vector<std::string>{CanonicalName(flag), text};
  bool yes = false;
  if (!YAML::convert<bool>::decode(entry.value, yes)) return wrong("true or false");
  return std::vector<std::string>{CanonicalName(yes ? flag : *OppositeOf(flag))};
}

absl::Status ConfigReader::ReadEntry(const Entry& entry) {
  const HorovodFlag* flag = FindHorovodKey(entry.path);
  if (flag == nullptr) return Unknown(entry);
  if (!read_.insert(entry.path).second) {
    return ErrorAt(entry.key.Mark(), absl::StrCat(entry.path, " is there already"),
                   "keep one of them");
  }
  if (entry.value.IsNull()) return absl::OkStatus();
  if (!entry.value.IsScalar()) {
    return ErrorAt(entry.value.Mark(), absl::StrCat(entry.path, " must be one value"));
  }
  auto words = WordsFor(*flag, entry);
  if (!words.ok()) return words.status();
  BorrowedOption option;
  option.words = *std::move(words);
  option.origin = absl::StrCat(source_, ":", entry.value.Mark().line + 1);
  option.place = PlaceOf(entry.value.Mark());
  option.shown = Show(entry.value.Mark());
  options_.push_back(std::move(option));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<BorrowedOption>> ReadHorovodConfig(const std::string& text,
                                                              const std::string& source) {
  ConfigReader reader(text, source);
  try {
    const absl::Status status = reader.Read(YAML::Load(text));
    if (!status.ok()) return status;
  } catch (const YAML::Exception& error) {
    return reader.ErrorAt(error.mark, absl::StrCat("this is not YAML: ", error.msg));
  }
  return reader.Take();
}

}  // namespace hvd::cli
