// SPDX-License-Identifier: Apache-2.0
#include "hostfile/host_item.h"

#include <arpa/inet.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "hostfile/foreign_forms.h"
#include "hostfile/nodeset.h"

namespace hvd {
namespace {

bool IsNameByte(char byte) {
  return absl::ascii_isalnum(static_cast<unsigned char>(byte)) || byte == '.' || byte == '-' ||
         byte == '_';
}

bool IsUserByte(char byte) {
  return IsNameByte(byte) || byte == '+' || byte == '\\' || byte == '@' || byte == '$';
}

bool IsIpv6(absl::string_view text) {
  in6_addr address;
  const std::string plain(text.substr(0, text.find('%')));
  return inet_pton(AF_INET6, plain.c_str(), &address) == 1;
}

std::string HintForByte(char byte) {
  if (byte == '=') return "a line begins with the host's name: host1 slots=4";
  if (byte == ',') return "in a hostfile every host has a line of its own";
  if (byte == ';' || byte == '|') {
    return "hosts are separated by commas in -H, and by the ends of lines in a hostfile";
  }
  if (byte == '"' || byte == '\'') return "no quotes stand around hosts; take them away";
  return "host names are made of letters, digits, '.', '-' and '_'";
}

// Takes "user@" off the front of `rest`.
absl::Status TakeUser(const SourceLine& line, absl::string_view* rest, std::string* user) {
  const size_t at = rest->rfind('@');
  if (at == absl::string_view::npos) return absl::OkStatus();
  const absl::string_view name = rest->substr(0, at);
  if (absl::Status status = CheckUser(line, name); !status.ok()) return status;
  *user = std::string(name);
  rest->remove_prefix(at + 1);
  if (rest->empty()) return line.ErrorAt(*rest, "the host after @ is missing", "");
  return absl::OkStatus();
}

// Whether `text` is what a nodeset has between its brackets.
bool IsNumbers(absl::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789-,/") == absl::string_view::npos;
}

// A '[' at the front of `rest` without its ']': a nodeset or an IPv6 address was meant.
absl::Status NeverClosed(const SourceLine& line, absl::string_view rest) {
  const absl::string_view numbers = rest.substr(1, rest.find(':') - 1);
  if (!IsNumbers(numbers)) {
    return line.ErrorAt(rest, "this [ is never closed", "write [fe80::1]:4 or node[1-4]:4");
  }
  return line.ErrorAt(
      rest.substr(1 + numbers.size()), "a ] is missing here",
      absl::StrCat("write the hosts' common name and close the brackets: node[", numbers, "]:4"));
}

// "[address%zone]" at the front of `rest`; the brackets are not part of the name.
absl::Status TakeIpv6(const SourceLine& line, absl::string_view* rest, std::string* name) {
  const size_t close = rest->find(']');
  if (close == absl::string_view::npos) return NeverClosed(line, *rest);
  const absl::string_view inside = rest->substr(1, close - 1);
  const size_t percent = inside.find('%');
  const absl::string_view zone =
      percent == absl::string_view::npos ? "any" : inside.substr(percent + 1);
  for (const char byte : zone) {
    if (!IsNameByte(byte)) return line.ErrorAt(zone, "this is not a network interface's name", "");
  }
  if (zone.empty() || !IsIpv6(inside)) {
    return line.ErrorAt(
        inside, absl::StrCat(Quoted(inside), " is not an IPv6 address"),
        IsNumbers(inside)
            ? absl::StrCat("write the hosts' common name before it: node[", inside, "]")
            : "write [fe80::1%eth0], or for a nodeset node[1-4]");
  }
  *name = std::string(inside);
  rest->remove_prefix(close + 1);
  return absl::OkStatus();
}

// The part of `rest` up to the colon that begins the slots, if there is one.
absl::string_view TakeName(absl::string_view* rest) {
  const absl::string_view name = rest->substr(0, rest->find(':'));
  rest->remove_prefix(name.size());
  return name;
}

absl::Status CheckName(const SourceLine& line, absl::string_view name) {
  if (name.empty()) return line.ErrorAt(name, "the host's name is missing", "write host1:4");
  bool inside = false;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '[') inside = true;
    if (!inside && name[i] != ']' && !IsNameByte(name[i])) {
      return line.ErrorAt(name.substr(i), "this cannot stand in a host's name",
                          HintForByte(name[i]));
    }
    if (name[i] == ']') inside = false;
  }
  return absl::OkStatus();
}

absl::Status TakeNames(const SourceLine& line, absl::string_view* rest,
                       std::vector<std::string>* names) {
  if (IsIpv6(*rest)) {
    const size_t last = rest->rfind(':');
    const bool both = IsIpv6(rest->substr(0, last));
    return line.ErrorAt(*rest, "an IPv6 address stands in brackets",
                        absl::StrCat("write [", *rest, "]",
                                     both ? absl::StrCat(", or [", rest->substr(0, last), "]",
                                                         rest->substr(last), " with its slots")
                                          : ""));
  }
  const absl::string_view name = TakeName(rest);
  if (absl::Status status = CheckName(line, name); !status.ok()) return status;
  absl::StatusOr<std::vector<std::string>> expanded = ExpandNodeset(line, name);
  if (!expanded.ok()) return expanded.status();
  // The first name has the fewest digits and the last the most.
  if (expanded->back().size() > kMaxNameLength) {
    return line.ErrorAt(name, "this host name is too long", "");
  }
  *names = *std::move(expanded);
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckUser(const SourceLine& line, absl::string_view name) {
  if (name.empty()) return line.ErrorAt(name, "the user's name is missing", "");
  for (size_t i = 0; i < name.size(); ++i) {
    // At the front ssh would take a '-' for an option.
    if (!IsUserByte(name[i]) || (i == 0 && name[i] == '-')) {
      return line.ErrorAt(name.substr(i), "this cannot stand in a user's name",
                          name[i] == ':' ? "a port is stated by port=22, or for all hosts by "
                                           "--ssh-port"
                                         : "");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<HostItem> ParseHostItem(const SourceLine& line, absl::string_view word) {
  HostItem item;
  item.word = word;
  absl::Status status = RefuseForeignForm(line, word);
  if (!status.ok()) return status;
  absl::string_view rest = word;
  status = TakeUser(line, &rest, &item.user);
  if (!status.ok()) return status;
  if (absl::StartsWith(rest, "[")) {
    status = TakeIpv6(line, &rest, &item.names.emplace_back());
  } else if (absl::StartsWith(rest, "-")) {
    // ssh would take it for an option.
    status = line.ErrorAt(rest, "a host name does not begin with -", "");
  } else {
    status = TakeNames(line, &rest, &item.names);
  }
  if (!status.ok()) return status;
  if (rest.empty()) return item;
  if (rest.front() != ':') {
    return line.ErrorAt(rest, "only :slots can follow here", "write [fe80::1]:4");
  }
  const absl::string_view mention = word.substr(0, word.size() - rest.size());
  const absl::StatusOr<int> slots = ParseColonSlots(line, mention, rest.substr(1));
  if (!slots.ok()) return slots.status();
  item.slots = *slots;
  return item;
}

}  // namespace hvd
