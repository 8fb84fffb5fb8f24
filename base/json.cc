// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/printable.h"

namespace hvd {
namespace {

constexpr char kReplacement[] = "\xef\xbf\xbd";  // U+FFFD

// A list on one line, or with a line for each of its objects.
std::string RenderMember(const Json& value) {
  if (!value.is_array() || value.empty() || !value.front().is_object()) return RenderJson(value);
  std::string text = "[";
  for (const Json& element : value) {
    absl::StrAppend(&text, text.size() > 1 ? ",\n" : "\n", RenderJson(element));
  }
  return text + "]";
}

}  // namespace

std::string JsonText(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const Character one = TakeCharacter(&bytes);
    text += one.well_formed ? one.bytes : kReplacement;
  }
  return text;
}

double Rounded(double value, int decimals) {
  const double scale = std::pow(10.0, decimals);
  return std::round(value * scale) / scale;
}

// The library escapes what JSON forbids in a string; outside of one, all is printable.
std::string RenderJson(const Json& value) {
  const std::string dumped = value.dump();
  std::string text;
  for (std::string_view rest = dumped; !rest.empty();) {
    const Character one = TakeCharacter(&rest);
    if (one.printable) {
      text += one.bytes;
    } else {
      absl::StrAppendFormat(&text, "\\u%04x", one.code);
    }
  }
  return text;
}

std::string RenderJsonLines(const Json& object) {
  std::string text = "{";
  for (const auto& [name, value] : object.items()) {
    absl::StrAppend(&text, text.size() > 1 ? ",\n" : "", JsonString(name), ":",
                    RenderMember(value));
  }
  return text + "}\n";
}

std::string JsonString(std::string_view bytes) { return RenderJson(JsonText(bytes)); }

}  // namespace hvd
