// SPDX-License-Identifier: Apache-2.0
// What a user sees who wrote a host wrongly: place, line, caret, next step.
#include <time.h>

#include <catch2/catch.hpp>
#include <random>

#include "tests/hostfile/show_hosts.h"
#include "tests/support/patience.h"

namespace hvd {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

TEST_CASE("an error shows the place, the line, a caret and a suggestion") {
  CHECK(ShowFile("a slots=2\nb slot=4\n") ==
        "hosts:2:3: unknown key \"slot\"\n"
        "  b slot=4\n"
        "    ^\n"
        "  did you mean slots=?");
  CHECK(ShowFile("# boxes\n\tb solts=4  # big\n") ==
        "hosts:2:4: unknown key \"solts\"\n"
        "  \tb solts=4  # big\n"
        "  \t  ^\n"
        "  did you mean slots=?");
  CHECK(ShowList("a:2,b:x") ==
        "-H:1:7: slots must be a number, not \"x\"\n"
        "  a:2,b:x\n"
        "        ^\n"
        "  write a whole number from 1 to 65536");
}

TEST_CASE("numbers of slots are checked") {
  CHECK_THAT(ShowList("a:0"), StartsWith("-H:1:3: slots must be at least 1, not 0"));
  CHECK_THAT(ShowList("a:-1"), StartsWith("-H:1:3: slots must be at least 1, not -1"));
  CHECK_THAT(ShowList("a:"), StartsWith("-H:1:3: the number of slots is missing"));
  CHECK_THAT(ShowList("a:65537"), StartsWith("-H:1:3: slots must be at most 65536, not 65537"));
  CHECK_THAT(ShowList("a:1000000000000000000000"), Contains("must be at most 65536"));
  CHECK_THAT(ShowList("a:4x"), StartsWith("-H:1:4: slots must be a number, not \"4x\""));
  CHECK_THAT(ShowList("a:2:3"), StartsWith("-H:1:4: a second colon cannot stand here"));
  CHECK_THAT(ShowFile("a slots=0"), StartsWith("hosts:1:9: slots must be at least 1, not 0"));
  CHECK_THAT(ShowFile("a slots="), StartsWith("hosts:1:9: the number of slots is missing"));
  CHECK_THAT(ShowFile("a slots=1e9"), Contains("must be a number"));
  CHECK_THAT(ShowFile("a max_slots=-3"), StartsWith("hosts:1:13: max_slots must be at least 1"));
  CHECK_THAT(ShowFile("a port=65536"), StartsWith("hosts:1:8: port must be at most 65535"));
  CHECK_THAT(ShowFile("a port=0"), StartsWith("hosts:1:8: port must be at least 1"));
}

TEST_CASE("words that are no pairs are named") {
  CHECK_THAT(ShowFile("a 4"), StartsWith("hosts:1:3: ") && Contains("write slots=4"));
  CHECK_THAT(ShowFile("a slots:4"), Contains("write slots=4"));
  CHECK_THAT(ShowFile("a slots"), StartsWith("hosts:1:3: after the host come pairs"));
  CHECK_THAT(ShowFile("a b c"), Contains("every host has a line of its own"));
  CHECK_THAT(ShowFile("a =4"), StartsWith("hosts:1:3: unknown key \"\""));
  CHECK_THAT(ShowFile("a binding=core"), Contains("that is Hydra's") && Contains("--bind none"));
  CHECK_THAT(ShowFile("a colour=red"), Contains("known are slots, max_slots, port and user"));
  CHECK_THAT(ShowFile("a ppn=4"), Contains("write slots=4"));
  CHECK_THAT(ShowFile("a slots 3"), Contains("write slots=3"));
  CHECK_THAT(ShowFile("a slots=2 slots=3"), StartsWith("hosts:1:11: ") && Contains("twice"));
  CHECK_THAT(ShowFile("a:2 slots=3"), StartsWith("hosts:1:5: ") && Contains("twice"));
  CHECK_THAT(ShowFile("u@a user=v"), StartsWith("hosts:1:5: ") && Contains("twice"));
  CHECK_THAT(ShowFile("a user="), StartsWith("hosts:1:8: the user's name is missing"));
  CHECK_THAT(ShowFile("a user=-oProxyCommand"), StartsWith("hosts:1:8: this cannot stand"));
}

TEST_CASE("names that cannot be a host's are refused") {
  CHECK_THAT(ShowFile("slots=4"), StartsWith("hosts:1:6: ") && Contains("begins with the host's"));
  CHECK_THAT(ShowFile("a,b"), StartsWith("hosts:1:2: ") && Contains("a line of its own"));
  CHECK_THAT(ShowList("a;b"), StartsWith("-H:1:2: ") && Contains("separated by commas"));
  CHECK_THAT(ShowList("a slots=2"), StartsWith("-H:1:2: ") && Contains("hostfile"));
  CHECK_THAT(ShowList("-oProxyCommand=x"), StartsWith("-H:1:1: a host name does not begin with -"));
  CHECK_THAT(ShowList("u@-x"), StartsWith("-H:1:3: a host name does not begin with -"));
  CHECK_THAT(ShowList("-x@a"), StartsWith("-H:1:1: "));
  CHECK_THAT(ShowList("^a"), Contains("excluding hosts"));
  CHECK_THAT(ShowList("+n0"), Contains("relative hosts"));
  CHECK_THAT(ShowList("@gpu"), Contains("user before @ is missing"));
  CHECK_THAT(ShowList("u@"), StartsWith("-H:1:3: the host after @ is missing"));
  CHECK_THAT(ShowList(":4"), StartsWith("-H:1:1: the host's name is missing"));
  CHECK_THAT(ShowList("a$(id):2"), StartsWith("-H:1:2: "));
  CHECK_THAT(ShowFile("caf\xC3\xA9 slots=2"), StartsWith("hosts:1:4: this cannot stand"));
  CHECK_THAT(ShowFile("a\xC2\xA0slots=2"), StartsWith("hosts:1:2: this cannot stand"));
  CHECK_THAT(ShowList(std::string(254, 'a')), Contains("too long"));
}

TEST_CASE("IPv6 addresses are checked") {
  CHECK_THAT(ShowList("fe80::1"), Contains("stands in brackets") && Contains("write [fe80::1]"));
  CHECK_THAT(ShowList("[fe80::1"), StartsWith("-H:1:1: this [ is never closed"));
  CHECK_THAT(ShowList("[fe80::zz]:2"), StartsWith("-H:1:2: \"fe80::zz\" is not an IPv6 address"));
  CHECK_THAT(ShowList("[1-4]:2"), Contains("common name before it: node[1-4]"));
  CHECK_THAT(ShowList("[fe80::1%]:2"), Contains("is not an IPv6 address"));
  CHECK_THAT(ShowList("[fe80::1%a b]"), StartsWith("-H:1:"));
  CHECK_THAT(ShowList("[::1]4"), StartsWith("-H:1:6: only :slots can follow"));
}

TEST_CASE("what other tools write is told as what it looks like") {
  CHECK(ShowList("user@host1:2222") ==
        "-H:1:12: 2222 slots on one host? Behind the colon stand its slots, not a port\n"
        "  user@host1:2222\n"
        "             ^\n"
        "  write user@host1:4 and --ssh-port 2222, or in a hostfile: user@host1 slots=4 port=2222");
  CHECK(ShowList("user@host:22:4") ==
        "-H:1:11: a port cannot stand here, only the slots\n"
        "  user@host:22:4\n"
        "            ^\n"
        "  write user@host:4 and --ssh-port 22, or in a hostfile: user@host slots=4 port=22");
  CHECK_THAT(ShowList("b,a:4:2222"), StartsWith("-H:1:7: a port cannot") && Contains("a:4 and"));
  CHECK(ShowList("a:4;touch") ==
        "-H:1:4: ';' cannot stand behind the slots\n"
        "  a:4;touch\n"
        "     ^\n"
        "  hosts are separated by commas in -H, and by the ends of lines in a hostfile");
  CHECK(ShowList("[1-10:2") ==
        "-H:1:6: a ] is missing here\n"
        "  [1-10:2\n"
        "       ^\n"
        "  write the hosts' common name and close the brackets: node[1-10]:4");
  CHECK(ShowList("node[1-4:2") ==
        "-H:1:9: a ] is missing here\n"
        "  node[1-4:2\n"
        "          ^\n"
        "  write node[1-4], and the slots behind it: node[1-4]:2");
  CHECK(ShowList("node1(x2)") ==
        "-H:1:6: Slurm's (xN) repeats a count; hosts with their slots stand here\n"
        "  node1(x2)\n"
        "       ^\n"
        "  write node1:2 for so many slots");
  CHECK_THAT(ShowList("a:4(x2)"), StartsWith("-H:1:4: Slurm's") && Contains("node[1-2]:4"));
  CHECK_THAT(ShowList("a(x"), Contains("write a:2 "));
  CHECK_THAT(ShowList("ssh://u@a:22"), StartsWith("-H:1:1: a host is named, not addressed"));
  CHECK_THAT(ShowList("a:slots=4"), StartsWith("-H:1:3: ") && Contains("write a:4, or in"));
  CHECK_THAT(ShowList("fe80::1:4"), Contains("write [fe80::1:4], or [fe80::1]:4"));
  CHECK_THAT(ShowList("\"a:2\""), Contains("take them away"));
  CHECK_THAT(ShowFile("a user=bob:22"), Contains("port=22"));
  CHECK(ShowList("a:128,b:1023,c:65536") == "a x128, b x1023, c x65536");
  CHECK(ShowFile("a slots=2222") == "a x2222");
}

TEST_CASE("empty lists say what to write") {
  CHECK(ShowList("") == "-H: no host is named here\n  write for example host1:4,host2:4");
  CHECK_THAT(ShowList("  "), StartsWith("-H: no host is named"));
  CHECK(ShowFile("") == "hosts: no host is named here\n  write for example host1 slots=4");
  CHECK_THAT(ShowFile("# only\n\n/* comments */\n"), StartsWith("hosts: no host is named"));
  CHECK_THAT(ShowFile("\xEF\xBB\xBF"), StartsWith("hosts: no host is named"));
  CHECK_THAT(ShowList("a,,b"), StartsWith("-H:1:3: a host is missing here"));
  CHECK_THAT(ShowList("a,"), StartsWith("-H:1:3: a host is missing here"));
  CHECK_THAT(ShowList(","), StartsWith("-H:1:1: a host is missing here"));
}

TEST_CASE("files that are no hostfiles are refused early") {
  CHECK_THAT(ShowFile(std::string("a\nb\0c\n", 6)), StartsWith("hosts:2:2: a NUL byte"));
  CHECK_THAT(ShowFile("\xFF\xFE"
                      "a\0"),
             StartsWith("hosts:1:1: this file is UTF-16"));
  CHECK_THAT(ShowFile(std::string(70000, 'a')), StartsWith("hosts:1:1: this line has 70000 bytes"));
  CHECK_THAT(ShowFile(std::string((16 << 20) + 1, '\n')), Contains("at most 16 MiB"));
  CHECK_THAT(ShowFile("\x7F"
                      "ELF\x02\x01"),
             StartsWith("hosts:1:1: "));
}

TEST_CASE("a comment that is never closed is named where it begins") {
  CHECK_THAT(ShowFile("a\nb /* x\nc\n"), StartsWith("hosts:2:3: this comment is never closed"));
  CHECK_THAT(ShowFile("/* x */ a /* y\nc"), StartsWith("hosts:1:11: this comment is never closed"));
  CHECK_THAT(ShowFile("/* x\n*/ a /* y\nc"), StartsWith("hosts:2:6: this comment is never closed"));
  CHECK_THAT(ShowFile("/*/ a\n"), StartsWith("hosts:1:1: this comment is never closed"));
}

// Returns this thread's seconds of the processor, which other programs do not use up.
double CpuSeconds() {
  timespec used;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

TEST_CASE("ten megabytes end within a second, whatever they are") {
  const double before = CpuSeconds();
  std::string repeated, garbage(10 << 20, '[');
  while (repeated.size() < (10 << 20)) repeated += "a slots=1 # the same\n";
  CHECK_THAT(ShowFile(repeated), Contains("more than"));
  CHECK_THAT(ShowFile(garbage), StartsWith("hosts:1:1:"));
  CHECK_THAT(ShowList(garbage), StartsWith("-H:1:"));
  CHECK_THAT(ShowFile(std::string(10 << 20, '\n')), Contains("no host"));
  CHECK_THAT(ShowList("n" + std::string(60000, '[') + "x"), StartsWith("-H:1:"));
  CHECK(CpuSeconds() - before < Patient(5));
}

TEST_CASE("no text makes the parsers fail otherwise than by an error that names the source") {
  static constexpr char kBytes[] = "ab12[]-,:/=@%*# \n\t.\r+^\0\xC3\xA9slots=max_port";
  std::mt19937 random(7);
  int good = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (int length = random() % 24; length > 0; --length) {
      text += kBytes[random() % (sizeof kBytes - 1)];
    }
    const auto list = ParseHostList(text, "-H");
    const auto file = ParseHostfile(text, "hosts");
    good += (list.ok() ? 1 : 0) + (file.ok() ? 1 : 0);
    if (!list.ok()) REQUIRE_THAT(std::string(list.status().message()), StartsWith("-H:"));
    if (!file.ok()) REQUIRE_THAT(std::string(file.status().message()), StartsWith("hosts:"));
  }
  CHECK(good > 0);
}

}  // namespace
}  // namespace hvd
