// SPDX-License-Identifier: Apache-2.0
#include "hostfile/comments.h"

#include <catch2/catch.hpp>

namespace hvd {
namespace {

std::string Erased(std::string text, CommentEraser* eraser) {
  eraser->Erase(&text);
  return text;
}

TEST_CASE("comments become blanks of the same length") {
  CommentEraser eraser;
  CHECK(Erased("a # b", &eraser) == "a    ");
  CHECK(Erased("a // b", &eraser) == "a     ");
  CHECK(Erased("a /* b */ c", &eraser) == "a         c");
  CHECK(Erased("/**//**/a", &eraser) == "        a");
  CHECK(Erased("a/b * c", &eraser) == "a/b * c");
  CHECK(Erased("", &eraser).empty());
  CHECK_FALSE(eraser.inside());
}

TEST_CASE("a block comment goes on over lines") {
  CommentEraser eraser;
  CHECK(Erased("a /* b", &eraser) == "a     ");
  CHECK(eraser.inside());
  CHECK(eraser.opened_at() == 2);
  CHECK(Erased("# still // inside", &eraser) == std::string(17, ' '));
  CHECK(Erased("x */ c # d", &eraser) == "     c    ");
  CHECK_FALSE(eraser.inside());
}

TEST_CASE("an opener does not close itself") {
  CommentEraser eraser;
  CHECK(Erased("/*/ a", &eraser) == "     ");
  CHECK(eraser.inside());
}

}  // namespace
}  // namespace hvd
