// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/direct/words.h"

#include <catch2/catch.hpp>

namespace hvd::rt {
namespace {

Signature Sum(int64_t elements) {
  Signature s;
  s.kind = RequestKind::kAllreduce;
  s.dtype = HVD_FLOAT32;
  s.op = HVD_SUM;
  s.ndim = 1;
  s.shape[0] = elements;
  return s;
}

TEST_CASE("only small tensors that all ranks can read go directly") {
  CHECK(DirectWordOf(Sum(1024)) != kThroughBoard);
  Signature named = Sum(1024);
  named.contents = 7;
  CHECK(DirectWordOf(named) != DirectWordOf(Sum(1024)));
  CHECK(DirectWordOf(Sum(1025)) == kThroughBoard);
}

TEST_CASE("what marks cannot carry goes through the board") {
  Signature s = Sum(4);
  SECTION("scaled") { s.prescale = 2; }
  SECTION("compressed") { s.compression = 1; }
  SECTION("a group") { s.group_count = 2; }
  SECTION("on a GPU") { s.device_type = HVD_CUDA; }
  SECTION("huge in one dimension, empty in another") {
    s.ndim = 2;
    s.shape = {int64_t{1} << 60, 0};
  }
  CHECK(DirectWordOf(s) == kThroughBoard);
}

TEST_CASE("the same request has the same word, with the bytes that its rank brings") {
  const uint64_t word = DirectWordOf(Sum(3));
  CHECK(word == DirectWordOf(Sum(3)));
  CHECK(BytesOfDirectWord(word) == 12);
  CHECK(NameTheSame(word, word + 4));
  CHECK_FALSE(NameTheSame(word, DirectWordOf(Sum(4))));
}

TEST_CASE("in place, scales and where the tensor lies belong to the word") {
  Signature scaled = Sum(3);
  scaled.postscale = 0.5;
  const uint64_t word = DirectWordInPlace(Sum(3), false, 16);
  CHECK(BytesOfDirectWord(word) == 16);
  CHECK_FALSE(NameTheSame(word, DirectWordInPlace(Sum(3), true, 16)));
  CHECK_FALSE(NameTheSame(word, DirectWordInPlace(scaled, false, 16)));
  CHECK_FALSE(NameTheSame(word, DirectWordOf(Sum(3))));
}

}  // namespace
}  // namespace hvd::rt
