// SPDX-License-Identifier: Apache-2.0
#include "hostfile/comments.h"

#include <algorithm>

namespace hvd {

void CommentEraser::Erase(std::string* text) {
  size_t at = 0;
  while (at < text->size()) {
    size_t end;
    if (inside_) {
      end = text->find("*/", at);
      inside_ = end == std::string::npos;
      end = inside_ ? text->size() : end + 2;
    } else if ((*text)[at] == '#' || text->compare(at, 2, "//") == 0) {
      end = text->size();
    } else if (text->compare(at, 2, "/*") == 0) {
      inside_ = true;
      opened_at_ = at;
      end = std::min(at + 2, text->size());
    } else {
      ++at;
      continue;
    }
    std::fill(text->begin() + at, text->begin() + end, ' ');
    at = end;
  }
}

}  // namespace hvd
