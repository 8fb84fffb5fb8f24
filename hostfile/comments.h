// SPDX-License-Identifier: Apache-2.0
// Comments of a hostfile: "#" and "//" to the line's end, "/* */" over any number of lines.
#pragma once

#include <string>

namespace hvd {

// Fed line by line; remembers whether a "/*" is still open.
class CommentEraser {
 public:
  // Overwrites the comments in `text` with blanks, so that columns stay what they are.
  void Erase(std::string* text);

  bool inside() const { return inside_; }
  // Where in the line the comment that is still open began, if it began in the last line given.
  size_t opened_at() const { return opened_at_; }

 private:
  bool inside_ = false;
  size_t opened_at_ = 0;
};

}  // namespace hvd
