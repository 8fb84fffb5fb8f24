// SPDX-License-Identifier: Apache-2.0
#include "cli/discovery/host_book.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

HostBook BookOf(bool is_file, std::vector<HostSlots> known = {}) {
  HostBookRules rules;
  rules.source = "hosts";
  rules.unstated_slots = 2;
  rules.is_file = is_file;
  rules.is_local_host = [](const HostSlots& host) {
    return host.name == "localhost" || host.name == "box";
  };
  return HostBook(std::move(rules), std::move(known));
}

std::string Shown(const HostBook& book) {
  std::string text;
  for (const HostSlots& host : book.hosts()) {
    absl::StrAppend(&text, text.empty() ? "" : " ", host.name, ":", host.slots);
  }
  return text;
}

// Has the book take a script's list, after which it has `hosts`.
HostNews Took(HostBook* book, const std::string& text, const std::string& hosts) {
  HostNews news = book->Take(text);
  CHECK(Shown(*book) == hosts);
  CHECK(news.fatal.empty());
  return news;
}

TEST_CASE("a script's list is a hostfile's text") {
  HostBook book = BookOf(false);
  CHECK(Took(&book, "a\nb:4\n# nobody\nc slots=1\nd max_slots=1\n", "a:2 b:4 c:1 d:1").changed);
  CHECK_FALSE(Took(&book, "a\nb:4\nc:1\nd:1\n", "a:2 b:4 c:1 d:1").changed);
}

TEST_CASE("a script may name hosts that have nothing free, a hostfile not") {
  HostBook book = BookOf(false);
  CHECK(Took(&book, "a:2\n b:0 \nc:1\n", "a:2 c:1").changed);
  CHECK(Took(&book, "a:0\nb:0\n", "").changed);
  Took(&book, "a:2\n", "a:2");
  CHECK_THAT(book.Take("b:0\n:0\n").said, Contains("hosts:2:"));
  CHECK(Shown(book) == "a:2");
  HostBook file = BookOf(true);
  file.Take("a:0\n");
  CHECK_THAT(file.Take("a:0\n").fatal, Contains("hosts:1:"));
}

TEST_CASE("where a source states no slots, hosts keep those they were planned with") {
  HostBookRules rules;
  rules.has_planned_slots = true;
  rules.is_local_host = [](const HostSlots&) { return false; };
  std::vector<HostSlots> known(2);
  known[0].name = "n1";
  known[0].slots = 3;
  known[1].name = "n2";
  HostBook book(rules, known);
  CHECK_FALSE(Took(&book, "n1\nn2\n", "n1:3 n2:1").changed);
  CHECK(Took(&book, "n2\n", "n2:1").changed);
  CHECK(Took(&book, "n3\nn1\n", "n1:3 n3:3").changed);
  CHECK(Took(&book, "", "").changed);
}

TEST_CASE("hosts stand in the order of their first appearance, though they were away") {
  HostBook book = BookOf(false);
  Took(&book, "b\na\n", "b:2 a:2");
  CHECK(Took(&book, "c\na\n", "a:2 c:2").changed);
  Took(&book, "A\nc\nb\nd\n", "b:2 A:2 c:2 d:2");
}

TEST_CASE("slots may change, and none are more than one host's ranks can be") {
  HostBook book = BookOf(false);
  Took(&book, "a:1\n", "a:1");
  CHECK(Took(&book, "a:3\n", "a:3").changed);
  CHECK(Took(&book, "a:1000\n", "a:128").changed);
}

TEST_CASE("mentions add up, and so do this machine's names") {
  HostBook book = BookOf(false);
  Took(&book, "a:1\na:2\nlocalhost:1\nbox:3\n", "a:3 localhost:4");
}

TEST_CASE("an empty text of a script means that there are no hosts now") {
  HostBook book = BookOf(false);
  CHECK(Took(&book, "", "").changed);
  CHECK_FALSE(Took(&book, "# none\n", "").changed);
  CHECK(Took(&book, "a\n", "a:2").changed);
  const HostNews gone = Took(&book, "\n", "");
  CHECK(gone.changed);
  CHECK(gone.said.empty());
}

TEST_CASE("the first list must be one") {
  HostBook garbage = BookOf(false);
  const HostNews news = garbage.Take("a\nb lots\n");
  CHECK_THAT(news.fatal, StartsWith("hosts:2:3: "));
  CHECK_FALSE(news.changed);
  HostBook failing = BookOf(false);
  CHECK(failing.Fail("it broke").fatal == "it broke");
}

TEST_CASE("garbage keeps the last good list, and is told once") {
  HostBook book = BookOf(false);
  Took(&book, "a\n", "a:2");
  for (const char* garbage : {"a\nb lots\n", "\x1b[31mred\n", "a;b\n", "-oProxyCommand=x\n"}) {
    HostBook fresh = BookOf(false);
    Took(&fresh, "a\n", "a:2");
    const HostNews news = Took(&fresh, garbage, "a:2");
    CHECK_FALSE(news.changed);
    CHECK_THAT(news.said, StartsWith("hosts:") && Contains("\n  the hosts stay as they were"));
    CHECK_THAT(news.said, !Contains("\x1b"));
  }
  CHECK(Took(&book, "a b\n", "a:2").said != "");
  CHECK(Took(&book, "a b c\n", "a:2").said.empty());
  CHECK(book.Fail("it broke").said.empty());
  CHECK(Took(&book, std::string("a\0b", 3), "a:2").said.empty());
  CHECK(Took(&book, "a\nb\n", "a:2 b:2").changed);
}

TEST_CASE("a fault after a long time without is news again, one that comes and goes is not") {
  HostBook book = BookOf(false);
  Took(&book, "a\n", "a:2");
  CHECK(book.Fail("it broke").said == "it broke\n  the hosts stay as they were");
  for (int look = 0; look < 30; ++look) Took(&book, "a\n", "a:2");
  CHECK(book.Fail("it broke").said.empty());
  for (int look = 0; look < 60; ++look) Took(&book, "a\n", "a:2");
  CHECK_FALSE(book.Fail("it broke").said.empty());
  CHECK(Shown(book) == "a:2");
}

std::vector<HostSlots> Known() {
  HostSlots host;
  host.name = "a";
  host.slots = 2;
  return {host};
}

TEST_CASE("a hostfile counts when two looks have seen the same") {
  HostBook book = BookOf(true, Known());
  CHECK_FALSE(book.Take("a\nb\n").changed);
  CHECK(Shown(book) == "a:2");
  CHECK(book.Take("a\nb\n").changed);
  CHECK(Shown(book) == "a:2 b:2");
}

TEST_CASE("a hostfile that is truncated and written anew keeps the last list") {
  HostBook book = BookOf(true, Known());
  for (const char* text : {"a\n", "a\n", "", "a\nb", "a\nb slo", "a\nb slots=3\n"}) {
    const HostNews news = book.Take(text);
    CHECK_FALSE(news.changed);
    CHECK(news.said.empty());
    CHECK(Shown(book) == "a:2");
  }
  CHECK(book.Take("a\nb slots=3\n").changed);
  CHECK(Shown(book) == "a:2 b:3");
  // Back in the middle of it: what stood there before is still what counts.
  book.Take("a\n");
  CHECK_FALSE(book.Take("a\nb slots=3\n").changed);
  CHECK_FALSE(book.Take("a\n").changed);
  CHECK(Shown(book) == "a:2 b:3");
}

TEST_CASE("a hostfile that names nobody for long, or is away for long, is told of") {
  HostBook empty = BookOf(true, Known());
  CHECK(empty.Take("").said.empty());
  CHECK_THAT(empty.Take("").said, StartsWith("hosts: no host is named here"));
  CHECK(Shown(empty) == "a:2");
  HostBook away = BookOf(true, Known());
  CHECK(away.Fail("it is away").said.empty());
  CHECK_THAT(away.Fail("it is away").said, StartsWith("it is away\n"));
  CHECK(away.Fail("it is away").said.empty());
  // A look before a failed one is no witness.
  HostBook torn = BookOf(true, Known());
  torn.Take("b\n");
  torn.Fail("it is away");
  CHECK_FALSE(torn.Take("b\n").changed);
  CHECK(torn.Take("b\n").changed);
}

}  // namespace
}  // namespace hvd::cli
