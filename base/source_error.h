// SPDX-License-Identifier: Apache-2.0
// Errors that point: source:line:column, the line itself, a caret and the next step.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hvd {

// A line of the user's text. `text` is what is parsed: the same bytes as `shown`, except that
// comments have become blanks. `source`, its place in messages, is printable. All outlive it.
class SourceLine {
 public:
  SourceLine(absl::string_view source, int number, absl::string_view shown, absl::string_view text)
      : source_(source), number_(number), shown_(shown), text_(text) {}

  absl::string_view text() const { return text_; }

  // InvalidArgument at the first byte of `piece`, which must lie in text(). `hint` may be empty.
  absl::Status ErrorAt(absl::string_view piece, absl::string_view message,
                       absl::string_view hint) const;

  // "hosts.txt:3"
  std::string Place() const;
  // "-H:1:7"
  std::string PlaceOf(absl::string_view piece) const;

 private:
  size_t OffsetOf(absl::string_view piece) const;

  absl::string_view source_;
  int number_;
  absl::string_view shown_;
  absl::string_view text_;
};

// The line and, below it, a caret under the byte at `offset`; of a long line a window around it.
std::string ShowWithCaret(absl::string_view line, size_t offset);

// `text` made printable, in double quotes; long ones cut.
std::string Quoted(absl::string_view text);

}  // namespace hvd
