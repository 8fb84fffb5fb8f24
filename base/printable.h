// SPDX-License-Identifier: Apache-2.0
// What others wrote (names, paths, commands, last lines), made fit for a terminal: none of it moves
// the cursor, colours what follows, turns its direction or begins a line that looks like ours.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hvd {

// The character that a text begins with.
struct Character {
  std::string_view bytes;  // a well-formed UTF-8 sequence, or one byte that begins none
  bool well_formed = true;
  bool printable = true;  // neither a control nor what breaks lines or turns their direction
  uint32_t code = 0;      // of a well-formed one
};

// Takes it off the front of `text`, which is not empty.
Character TakeCharacter(std::string_view* text);

// `foreign` on one line: control characters (C0, DEL, C1), line and paragraph separators and what
// changes the direction of text become \n, \x1b, \u009b or \u202e; a byte that is no UTF-8 becomes
// \x9b. The rest stays as it is, so that what is printable already does not change. A text of more
// than `most` bytes becomes its first ones and "...".
std::string Printable(std::string_view foreign, size_t most = std::string_view::npos);

// The same, but it keeps the ends of lines and the tabs: for a text of several lines whose foreign
// pieces have each been made printable, or that is shown behind a mark of its own on every line.
std::string PrintableLines(std::string_view foreign, size_t most = std::string_view::npos);

// A tensor's or a bucket's name, in single quotes; at most its first 120 bytes. hvd's own names are
// shown without the byte that keeps them apart from users'.
std::string ShownName(std::string_view name);

}  // namespace hvd
