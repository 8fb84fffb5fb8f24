// SPDX-License-Identifier: Apache-2.0
#include "cli/discovery/look_words.h"

#include <signal.h>

#include <catch2/catch.hpp>

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;

int Exited(int code) { return code << 8; }

TEST_CASE("it is said how a script ended, with its last words and the next step") {
  CHECK(ExplainScript("./h", {LookEnd::kEnded, Exited(3), "one\ntwo\x1b[2J\n"}) ==
        "the --host-discovery-script \"./h\" exited with code 3\n  | one\n  | two\\x1b[2J");
  CHECK_THAT(ExplainScript("./h", {LookEnd::kEnded, SIGSEGV, ""}), Contains("signal 11"));
  CHECK_THAT(ExplainScript("./h", {LookEnd::kEnded, Exited(126), ""}), Contains("chmod +x"));
  CHECK_THAT(ExplainScript("h", {LookEnd::kEnded, Exited(127), ""}), Contains("./NAME"));
  CHECK_THAT(ExplainScript(" /gone h", {LookEnd::kEnded, Exited(127), ""}),
             !Contains("./NAME") && Contains("on the host that hvdrun runs on"));
  CHECK(ExplainScript("h", {LookEnd::kTooLong, 9, "", 10}) ==
        "the --host-discovery-script \"h\" did not end within 10 s");
  CHECK_THAT(ExplainScript("h", {LookEnd::kTooMuch, 9, ""}), Contains("more than 1 MiB"));
  CHECK_THAT(ExplainScript("h", {LookEnd::kNotMade, 0, "fork: no\n"}),
             Contains("could not be started\n  | fork: no"));
}

TEST_CASE("of many last words the last ones are shown") {
  const std::string text = ExplainScript("h", {LookEnd::kEnded, Exited(1), "1\n2\n3\n4\n5\n6\n"});
  CHECK_THAT(text, !Contains("| 1") && Contains("| 2\n") && Contains("| 6"));
}

TEST_CASE("a hostfile that cannot be read is named") {
  CHECK(ExplainHostfile("/x\n", {LookEnd::kEnded, Exited(1), "cat: /x: No such file\n"}) ==
        "the hostfile /x\\n cannot be read: cat exited with code 1\n  | cat: /x: No such file");
}

}  // namespace
}  // namespace hvd::cli
