// SPDX-License-Identifier: Apache-2.0
#include "hostfile/nodeset.h"

#include <catch2/catch.hpp>

namespace hvd {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using Names = std::vector<std::string>;

absl::StatusOr<Names> Expand(const std::string& name) {
  return ExpandNodeset(SourceLine("-H", 1, name, name), name);
}

std::string Message(const std::string& name) {
  return std::string(Expand(name).status().message());
}

TEST_CASE("a nodeset stands for its hosts, in order") {
  CHECK(*Expand("a") == Names{"a"});
  CHECK(*Expand("node[1-4,7]") == Names{"node1", "node2", "node3", "node4", "node7"});
  CHECK(*Expand("n[3]") == Names{"n3"});
  CHECK(*Expand("n[9-11]") == Names{"n9", "n10", "n11"});
  CHECK(*Expand("n[1-8/2]x") == Names{"n1x", "n3x", "n5x", "n7x"});
  CHECK(*Expand("n[1-2/5]") == Names{"n1"});
  CHECK(*Expand("dc[1-2]n[5,7]") == Names{"dc1n5", "dc1n7", "dc2n5", "dc2n7"});
  CHECK(*Expand("n[1][2]") == Names{"n12"});
}

TEST_CASE("zero padding is kept") {
  CHECK(*Expand("n[08-11]") == Names{"n08", "n09", "n10", "n11"});
  CHECK(*Expand("n[098-101]") == Names{"n098", "n099", "n100", "n101"});
  CHECK(*Expand("n[99-101]") == Names{"n99", "n100", "n101"});
  CHECK(*Expand("n[01,2,003]") == Names{"n01", "n2", "n003"});
  CHECK(*Expand("n[0-2]") == Names{"n0", "n1", "n2"});
  CHECK(*Expand("n[00-02/2]") == Names{"n00", "n02"});
}

TEST_CASE("a nodeset is a set") { CHECK(*Expand("n[1-3,2,1]") == Names{"n1", "n2", "n3"}); }

TEST_CASE("nodesets that make no sense are refused where they go wrong") {
  CHECK_THAT(Message("n[1-4"), StartsWith("-H:1:6: a ] is missing here"));
  CHECK_THAT(Message("n1-4]"), StartsWith("-H:1:5: this ] closes nothing"));
  CHECK_THAT(Message("n[]"), StartsWith("-H:1:3: a number is missing"));
  CHECK_THAT(Message("n[1,]"), StartsWith("-H:1:5: a number is missing"));
  CHECK_THAT(Message("n[,1]"), StartsWith("-H:1:3: a number is missing"));
  CHECK_THAT(Message("n[1-]"), StartsWith("-H:1:3: a number is missing"));
  CHECK_THAT(Message("n[-4]"), StartsWith("-H:1:3: a number is missing"));
  CHECK_THAT(Message("n[1-4/]"), StartsWith("-H:1:3: a number is missing"));
  CHECK_THAT(Message("n[a-b]"), StartsWith("-H:1:3: \"a\" is not a number"));
  CHECK_THAT(Message("n[1-2-3]"), StartsWith("-H:1:5: \"2-3\" is not a number"));
  CHECK_THAT(Message("n[4-1]"),
             StartsWith("-H:1:3: this range runs backwards") && Contains("write 1-4"));
  CHECK_THAT(Message("n[1-4/0]"), StartsWith("-H:1:7: the step must be at least 1"));
  CHECK_THAT(Message("n[1-010]"), StartsWith("-H:1:5: both ends"));
  CHECK_THAT(Message("n[01-002]"), StartsWith("-H:1:6: both ends"));
  CHECK_THAT(Message("n[[1-2]]"), Contains("is not a number"));
  CHECK_THAT(Message("n[99999999999999999999]"), StartsWith("-H:1:3: this number is too long"));
}

TEST_CASE("nodesets are bounded before they are expanded") {
  CHECK(Expand("n[1-16384]")->size() == 16384);
  CHECK_THAT(Message("n[1-16385]"), Contains("more than 16384 hosts"));
  CHECK_THAT(Message("n[1-999999999999999]"), Contains("more than 16384 hosts"));
  CHECK_THAT(Message("n[1-200]m[1-200]"), StartsWith("-H:1:10: ") && Contains("more than 16384"));
  CHECK_THAT(Message("n[1-16000]" + std::string(60000, 'a')), Contains("too long"));
}

}  // namespace
}  // namespace hvd
