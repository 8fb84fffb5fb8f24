// SPDX-License-Identifier: Apache-2.0
#include "hostfile/foreign_forms.h"

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "hostfile/host_item.h"
#include "hostfile/number.h"

namespace hvd {
namespace {

constexpr NumberRule kSlotsRule = {"slots", kMaxRanks};
// The numbers that are taken for a port: no host has as many slots.
constexpr int kLeastPort = 1024;
constexpr int kMostPort = 65535;
constexpr int kSshPort = 22;
constexpr size_t kMostOfMention = 60;

struct ForeignStart {
  char first;
  absl::string_view message;
  absl::string_view hint;
};
constexpr std::array<ForeignStart, 4> kForeignStarts = {{
    {'^', "excluding hosts with ^ is not supported", "leave the host out of the list"},
    {'+', "relative hosts (+n0, +e) are not supported", "write the host's name"},
    {'@', "the user before @ is missing", "write user@host; host groups (@name) are not supported"},
    {'-', "a host name does not begin with -", ""},
}};

struct ForeignKey {
  absl::string_view name;
  absl::string_view advice;
};
constexpr absl::string_view kUseSlots = "write slots=4: how many ranks the host takes";
constexpr absl::string_view kUseName =
    "the name at the front is what ssh is given; an address may stand there, or in ~/.ssh/config";
constexpr absl::string_view kUseInterfaces =
    "interfaces are chosen for all hosts: hvdrun --network-interfaces";
constexpr std::array<ForeignKey, 14> kForeignKeys = {{
    {"binding", "that is Hydra's; hvdrun gives each rank cores of its own (--bind none does not)"},
    {"ifhn", kUseInterfaces},
    {"netmap", kUseInterfaces},
    {"np", kUseSlots},
    {"ppn", kUseSlots},
    {"procs", kUseSlots},
    {"nprocs", kUseSlots},
    {"gpus", kUseSlots},
    {"cores", kUseSlots},
    {"addr", kUseName},
    {"address", kUseName},
    {"hostname", kUseName},
    {"ansible_host", kUseName},
    {"ansible_port", "write port=22"},
}};

bool IsDigit(char byte) { return absl::ascii_isdigit(static_cast<unsigned char>(byte)); }

bool IsNumber(absl::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos;
}

bool LooksLikePort(absl::string_view text) {
  int number = 0;
  return absl::SimpleAtoi(text, &number) &&
         (number == kSshPort || (number >= kLeastPort && number <= kMostPort));
}

std::string Shown(absl::string_view text) {
  return Printable({text.data(), text.size()}, kMostOfMention);
}

std::string PortHint(absl::string_view mention, absl::string_view slots, absl::string_view port) {
  return absl::StrCat("write ", Shown(mention), ":", slots, " and --ssh-port ", port,
                      ", or in a hostfile: ", Shown(mention), " slots=", slots, " port=", port);
}

// "22:4" or "4:22".
absl::Status RefusePort(const SourceLine& line, absl::string_view mention, absl::string_view text) {
  const size_t colon = text.find(':');
  const absl::string_view first = text.substr(0, colon), second = text.substr(colon + 1);
  const bool numbers = IsNumber(first) && IsNumber(second);
  if (!numbers || (!LooksLikePort(first) && !LooksLikePort(second))) {
    return line.ErrorAt(
        text.substr(colon), "a second colon cannot stand here",
        absl::StrCat("write ", Shown(mention), ":4 for 4 slots; --ssh-port PORT states a port"));
  }
  const bool is_second = LooksLikePort(second) && !LooksLikePort(first);
  const absl::string_view port = is_second ? second : first, slots = is_second ? first : second;
  return line.ErrorAt(port, "a port cannot stand here, only the slots",
                      PortHint(mention, Shown(slots), Shown(port)));
}

// "4;touch": digits, and then what is none.
absl::Status RefuseTail(const SourceLine& line, absl::string_view mention, absl::string_view text,
                        size_t digits) {
  const absl::string_view tail = text.substr(digits);
  const std::string slots = absl::StrCat("write ", Shown(mention), ":", text.substr(0, digits));
  if (tail.front() == ';' || tail.front() == '|' || tail.front() == '&') {
    return line.ErrorAt(
        tail, absl::StrCat("'", tail.substr(0, 1), "' cannot stand behind the slots"),
        "hosts are separated by commas in -H, and by the ends of lines in a hostfile");
  }
  return line.ErrorAt(tail, absl::StrCat("slots must be a number, not ", Quoted(text)), slots);
}

}  // namespace

absl::Status RefuseForeignForm(const SourceLine& line, absl::string_view word) {
  for (const ForeignStart& form : kForeignStarts) {
    if (absl::StartsWith(word, absl::string_view(&form.first, 1))) {
      return line.ErrorAt(word, form.message, form.hint);
    }
  }
  const size_t scheme = word.find("://");
  if (scheme != absl::string_view::npos) {
    return line.ErrorAt(word, "a host is named, not addressed by a URL",
                        "write host1:4 for 4 slots; --ssh-port PORT states a port");
  }
  const size_t repeat = word.find("(x");
  if (repeat == absl::string_view::npos) return absl::OkStatus();
  const size_t end = word.find_first_not_of("0123456789", repeat + 2);
  const absl::string_view count = word.substr(repeat + 2, end - repeat - 2);
  const bool has_slots = word.substr(0, repeat).rfind(':') != absl::string_view::npos;
  return line.ErrorAt(
      word.substr(repeat), "Slurm's (xN) repeats a count; hosts with their slots stand here",
      has_slots ? "write a nodeset, whose hosts have as many slots each: node[1-2]:4"
                : absl::StrCat("write ", Shown(word.substr(0, repeat)), ":",
                               count.empty() ? "2" : Shown(count), " for so many slots"));
}

absl::string_view AdviceForKey(absl::string_view key) {
  for (const ForeignKey& foreign : kForeignKeys) {
    if (absl::EqualsIgnoreCase(foreign.name, key)) return foreign.advice;
  }
  return "";
}

absl::StatusOr<int> ParseColonSlots(const SourceLine& line, absl::string_view mention,
                                    absl::string_view text) {
  if (text.find(':') != absl::string_view::npos) return RefusePort(line, mention, text);
  if (text.find('=') != absl::string_view::npos) {
    return line.ErrorAt(text, "behind the colon stands a number of slots alone",
                        absl::StrCat("write ", Shown(mention),
                                     ":4, or in a hostfile: ", Shown(mention), " slots=4"));
  }
  size_t digits = 0;
  while (digits < text.size() && IsDigit(text[digits])) ++digits;
  if (digits > 0 && digits < text.size()) return RefuseTail(line, mention, text, digits);
  absl::StatusOr<int> slots = ParseNumber(line, text, kSlotsRule);
  if (!slots.ok() || *slots < kLeastPort || *slots > kMostPort) return slots;
  return line.ErrorAt(text,
                      absl::StrCat(text,
                                   " slots on one host? Behind the colon stand its slots, "
                                   "not a port"),
                      PortHint(mention, "4", text));
}

}  // namespace hvd
