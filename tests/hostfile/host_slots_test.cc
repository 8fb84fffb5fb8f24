// SPDX-License-Identifier: Apache-2.0
#include "hostfile/host_slots.h"

#include <catch2/catch.hpp>

#include "tests/hostfile/show_hosts.h"

namespace hvd {
namespace {

TEST_CASE("a list names hosts and their slots") {
  CHECK(ShowList("host1:4,host2:4") == "host1 x4, host2 x4");
  CHECK(ShowList("a") == "a x1");
  CHECK(ShowList("a:2,b2") == "a x2, b2 x1");
  CHECK(ShowList("localhost:2") == "localhost x2");
  CHECK(ShowList("10.0.0.7:3,gpu-1.example.org") == "10.0.0.7 x3, gpu-1.example.org x1");
  CHECK(ShowList("my_host:1") == "my_host x1");
  CHECK(ShowList(" a:2 , b:1 ") == "a x2, b x1");
  CHECK(ShowList("a:65536") == "a x65536");
}

TEST_CASE("a list takes users, IPv6 addresses and nodesets") {
  CHECK(ShowList("user@a:2") == "user@a x2");
  CHECK(ShowList("DOM\\me@a") == "DOM\\me@a x1");
  CHECK(ShowList("me@site.org@a:2") == "me@site.org@a x2");
  CHECK(ShowList("[fe80::1%eth0]:2") == "fe80::1%eth0 x2");
  CHECK(ShowList("root@[::1]") == "root@::1 x1");
  CHECK(ShowList("[2001:db8::1]:4,[2001:db8::2]:4") == "2001:db8::1 x4, 2001:db8::2 x4");
  CHECK(ShowList("node[1-4]:8") == "node1 x8, node2 x8, node3 x8, node4 x8");
  CHECK(ShowList("node[1-2,7]:8,login") == "node1 x8, node2 x8, node7 x8, login x1");
  CHECK(ShowList("u@n[01-02]-ib:2") == "u@n01-ib x2, u@n02-ib x2");
}

TEST_CASE("mentions of the same host in a list add up") {
  CHECK(ShowList("a:2,a:2") == "a x4");
  CHECK(ShowList("a,b,a,a") == "a x3, b x1");
  CHECK(ShowList("Node1:2,node1:1") == "Node1 x3");
  CHECK(ShowList("n[1-3]:1,n2:4") == "n1 x1, n2 x5, n3 x1");
}

TEST_CASE("hostfiles of other launchers are read") {
  CHECK(ShowFile("a slots=2\nb slots=4\n") == "a x2, b x4");  // Horovod, DeepSpeed
  CHECK(ShowFile("a slots=2 max_slots=4\nb cpu=3\nc count=5\n") == "a x2 max 4, b x3, c x5");
  CHECK(ShowFile("a max-slots=4\nb slots-max=4\nc slots_max=2") ==
        "a x1 max 4, b x1 max 4, c x1 max 2");
  CHECK(ShowFile("a:2\nb\n") == "a x2, b x1");                  // MPICH
  CHECK(ShowFile("u@a slots=2 port=2222\n") == "u@a:2222 x2");  // PRRTE
  CHECK(ShowFile("a:2 user=me\n") == "me@a x2");                // Hydra
  CHECK(ShowFile("node[01-02,5]:8 port=22\n") == "node01:22 x8, node02:22 x8, node5:22 x8");
  CHECK(ShowFile("[fe80::1%eth0] slots=2\n10.0.0.1\n") == "fe80::1%eth0 x2, 10.0.0.1 x1");
  CHECK(ShowFile("a SLOTS=2\nb Slots=3") == "a x2, b x3");
  CHECK(ShowFile("a slots = 2\nb slots= 3\nc slots =4\n") == "a x2, b x3, c x4");
}

TEST_CASE("layout of a hostfile does not matter") {
  CHECK(ShowFile("a slots=2") == "a x2");
  CHECK(ShowFile("\n\n a\tslots=2 \t\n\n") == "a x2");
  CHECK(ShowFile("a slots=2\r\nb\r\n") == "a x2, b x1");
  CHECK(ShowFile("a slots=2\rb\r") == "a x2, b x1");
  CHECK(ShowFile("\xEF\xBB\xBF"
                 "a slots=2\n") == "a x2");
}

TEST_CASE("comments of a hostfile are left out") {
  CHECK(ShowFile("# c\na slots=2 # gpu box\n") == "a x2");
  CHECK(ShowFile("// c\na slots=2// gpu box\n") == "a x2");
  CHECK(ShowFile("/* all\n of this */ a slots=2 /* and\n b slots=9 */\n") == "a x2");
  CHECK(ShowFile("/* b slots=3\n*/a slots=2\n") == "a x2");
  CHECK(ShowFile("a /* two */ slots=2 # /* not a start\nb\n") == "a x2, b x1");
  CHECK(ShowFile("a slots=4/**/\n") == "a x4");
}

TEST_CASE("each host remembers where it was first named") {
  const auto file = ParseHostfile("\n# c\na\nb\na\n", "my/hosts.txt");
  REQUIRE(file.ok());
  CHECK(file->at(0).where == "my/hosts.txt:3");
  CHECK(file->at(1).where == "my/hosts.txt:4");
  const auto list = ParseHostList("a:2, b:2", "-H");
  REQUIRE(list.ok());
  CHECK(list->at(1).where == "-H:1:6");
}

TEST_CASE("a large job's hostfile is read, one host more is refused") {
  std::string text;
  for (int i = 0; i < 16384; ++i) text += "host" + std::to_string(i) + " slots=4\n";
  const auto hosts = ParseHostfile(text, "hosts");
  REQUIRE(hosts.ok());
  CHECK(hosts->size() == 16384);
  CHECK(hosts->back().name == "host16383");
  CHECK(ShowFile(text + "straw\n").find("hosts:16385:1: this is host number 16385") == 0);
}

}  // namespace
}  // namespace hvd
