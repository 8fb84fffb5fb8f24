// SPDX-License-Identifier: Apache-2.0
// JSON as the programs write it: nlohmann's values, whose members keep their order, rendered so
// that what others wrote in them steers no terminal. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace hvd {

using Json = nlohmann::ordered_json;

// Any bytes as a text that JSON can hold: what is not UTF-8 becomes U+FFFD.
std::string JsonText(std::string_view bytes);
// With so many decimals at most, for figures that people read.
double Rounded(double value, int decimals = 6);

// On one line. Characters that are not printable (base/printable.h) become escapes.
std::string RenderJson(const Json& value);
// An object with a line for each member, and for each element of its lists of objects.
std::string RenderJsonLines(const Json& object);
// One string with its quotes.
std::string JsonString(std::string_view bytes);

}  // namespace hvd
