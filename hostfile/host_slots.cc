// SPDX-License-Identifier: Apache-2.0
#include "hostfile/host_slots.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/printable.h"
#include "hostfile/comments.h"
#include "hostfile/host_item.h"
#include "hostfile/host_merger.h"

namespace hvd {
namespace {

constexpr size_t kMaxLineBytes = 64 << 10;
constexpr absl::string_view kBlanks = " \t\v\f";

// Debian's absl is built with a string_view of its own.
absl::string_view FromStd(std::string_view text) { return {text.data(), text.size()}; }

bool IsBlank(absl::string_view text) {
  return text.find_first_not_of(kBlanks) == absl::string_view::npos;
}

absl::Status CheckSize(absl::string_view text, absl::string_view source) {
  if (text.size() <= kMaxHostfileBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(source, ": ", text.size(), " bytes are too much for a list of hosts\n  at most ",
                   kMaxHostfileBytes >> 20, " MiB are read; is this the right file?"));
}

absl::Status NoHosts(absl::string_view source, absl::string_view example) {
  return absl::NotFoundError(
      absl::StrCat(source, ": no host is named here\n  write for example ", example));
}

absl::Status CheckBytes(const SourceLine& line) {
  const absl::string_view text = line.text();
  if (text.size() > kMaxLineBytes) {
    return line.ErrorAt(text, absl::StrCat("this line has ", text.size(), " bytes"),
                        "is this the right file? A hostfile has one host a line");
  }
  const size_t nul = text.find('\0');
  if (nul == absl::string_view::npos) return absl::OkStatus();
  return line.ErrorAt(text.substr(nul), "a NUL byte stands here: this is not a text file",
                      "is this the right file?");
}

// Takes the next line off `rest`; it ends at LF, CR LF or CR.
absl::string_view TakeLine(absl::string_view* rest) {
  const absl::string_view line = rest->substr(0, rest->find_first_of("\r\n"));
  rest->remove_prefix(line.size());
  if (!absl::ConsumePrefix(rest, "\r\n") && !rest->empty()) rest->remove_prefix(1);
  return line;
}

absl::Status CheckEncoding(absl::string_view text, absl::string_view source) {
  if (!absl::StartsWith(text, "\xFF\xFE") && !absl::StartsWith(text, "\xFE\xFF")) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(source, ":1:1: this file is UTF-16\n  save it as UTF-8 or plain ASCII"));
}

// Splits at commas outside of brackets.
absl::string_view TakeListItem(absl::string_view* rest, bool* more) {
  int depth = 0;
  size_t at = 0;
  for (; at < rest->size(); ++at) {
    const char byte = (*rest)[at];
    if (byte == '[') ++depth;
    if (byte == ']') depth = std::max(0, depth - 1);
    if (byte == ',' && depth == 0) break;
  }
  const absl::string_view item = rest->substr(0, at);
  *more = at < rest->size();
  rest->remove_prefix(*more ? at + 1 : at);
  return item;
}

absl::Status AddListItem(const SourceLine& line, absl::string_view raw, HostMerger* merger) {
  absl::string_view word = raw;
  word.remove_prefix(std::min(word.find_first_not_of(kBlanks), word.size()));
  word = word.substr(0, word.find_last_not_of(kBlanks) + 1);
  if (word.empty()) {
    return line.ErrorAt(raw, "a host is missing here", "take the comma away or name a host");
  }
  const size_t blank = word.find_first_of(kBlanks);
  if (blank != absl::string_view::npos) {
    return line.ErrorAt(word.substr(blank), "hosts of a list are separated by commas",
                        "write host1:4,host2:4; pairs like slots=4 belong into a hostfile");
  }
  const absl::StatusOr<HostItem> item = ParseHostItem(line, word);
  if (!item.ok()) return item.status();
  return merger->Add(line, *item, line.PlaceOf(word));
}

}  // namespace

absl::StatusOr<std::vector<HostSlots>> ParseHostList(std::string_view list,
                                                     std::string_view list_source, int unstated) {
  const absl::string_view text = FromStd(list), source = FromStd(list_source);
  const SourceLine line(source, 1, text, text);
  if (absl::Status status = CheckSize(text, source); !status.ok()) return status;
  if (IsBlank(text)) return NoHosts(source, "host1:4,host2:4");
  HostMerger merger(unstated);
  absl::string_view rest = text;
  bool more = true;
  while (more) {
    const absl::string_view item = TakeListItem(&rest, &more);
    if (absl::Status status = AddListItem(line, item, &merger); !status.ok()) return status;
  }
  return merger.Take();
}

absl::StatusOr<std::vector<HostSlots>> ParseHostfile(std::string_view file, std::string_view path,
                                                     int unstated) {
  absl::string_view text = FromStd(file);
  const std::string shown_path = Printable(path);
  const absl::string_view source = shown_path;
  if (absl::Status status = CheckSize(text, source); !status.ok()) return status;
  if (absl::Status status = CheckEncoding(text, source); !status.ok()) return status;
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");
  HostMerger merger(unstated);
  CommentEraser eraser;
  absl::Status unclosed;
  for (int number = 1; !text.empty(); ++number) {
    const absl::string_view shown = TakeLine(&text);
    const SourceLine raw(source, number, shown, shown);
    if (absl::Status status = CheckBytes(raw); !status.ok()) return status;
    std::string bare(shown);
    const bool was_inside = eraser.inside();
    eraser.Erase(&bare);
    if (eraser.inside() && (!was_inside || shown.find("*/") != absl::string_view::npos)) {
      unclosed = raw.ErrorAt(shown.substr(eraser.opened_at()), "this comment is never closed",
                             "end it with */");
    }
    const SourceLine line(source, number, shown, bare);
    if (IsBlank(bare)) continue;
    const absl::StatusOr<HostItem> item = ParseHostLine(line);
    if (!item.ok()) return item.status();
    if (absl::Status status = merger.Add(line, *item, line.Place()); !status.ok()) return status;
  }
  if (eraser.inside()) return unclosed;
  if (merger.empty()) return NoHosts(source, "host1 slots=4");
  return merger.Take();
}

}  // namespace hvd
