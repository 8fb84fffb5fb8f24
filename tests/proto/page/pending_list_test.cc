// SPDX-License-Identifier: Apache-2.0
#include "proto/page/pending_list.h"

#include <catch2/catch.hpp>
#include <memory>

namespace hvd {
namespace {

TEST_CASE("an answer is read as it was written, for its own question and for earlier ones") {
  const auto area = std::make_unique<PendingArea>();
  PendingList read;
  CHECK_FALSE(ReadPending(*area, 1, &read));
  PendingList list;
  list.members = {0, 5};
  list.joined = true;
  list.set = 70000;
  list.tensors = {{7, "grad.1", "allreduce float32 [4] sum"}, {9, "b", "broadcast", {3, 70}, true}};
  WritePending(list, 4, area.get());
  CHECK_FALSE(ReadPending(*area, 5, &read));
  // Whoever asked before it has been answered, too: two may ask at a time.
  PendingList earlier;
  CHECK(ReadPending(*area, 3, &earlier));
  CHECK(earlier.tensors.size() == 2);
  CHECK(ReadPending(*area, UINT32_MAX, &earlier));  // 0 is left out where questions wrap
  REQUIRE(ReadPending(*area, 4, &read));
  CHECK(read.members == list.members);
  CHECK(read.joined);
  CHECK(read.set == 70000);
  CHECK_FALSE(read.truncated);
  REQUIRE(read.tensors.size() == 2);
  CHECK(read.tensors[0].sequence == 7);
  CHECK(read.tensors[0].name == "grad.1");
  CHECK(read.tensors[1].what == "broadcast");
  CHECK(read.tensors[0].between.empty());
  CHECK_FALSE(read.tensors[0].moving);
  CHECK(read.tensors[1].moving);
  CHECK(read.tensors[1].between == std::vector<int64_t>{3, 70});
}

TEST_CASE("names are told whole, however long, and many that begin alike have room") {
  const auto area = std::make_unique<PendingArea>();
  const std::string beginning(4000, 'n');
  PendingList list;
  for (uint64_t i = 0; i < 300; ++i) {
    list.tensors.push_back({i, beginning + std::to_string(i), "what"});
  }
  list.tensors.push_back({300, "", "what"});
  list.tensors.push_back({301, beginning, "what"});
  WritePending(list, 1, area.get());
  PendingList read;
  REQUIRE(ReadPending(*area, 1, &read));
  CHECK_FALSE(read.truncated);
  REQUIRE(read.tensors.size() == list.tensors.size());
  for (size_t i = 0; i < read.tensors.size(); ++i) {
    CHECK(read.tensors[i].name == list.tensors[i].name);
  }
}

TEST_CASE("what has no room is left out, and that is said") {
  const auto area = std::make_unique<PendingArea>();
  PendingList list;
  for (uint64_t i = 0; i < 5000; ++i) {
    list.tensors.push_back({i, std::to_string(i) + std::string(100, 'n'), "what"});
  }
  WritePending(list, 1, area.get());
  PendingList read;
  REQUIRE(ReadPending(*area, 1, &read));
  CHECK(read.truncated);
  CHECK(read.tensors.size() > 400);
  CHECK(read.tensors.back().sequence == read.tensors.size() - 1);
}

TEST_CASE("a scribbled answer is refused") {
  const auto area = std::make_unique<PendingArea>();
  area->bytes = 0xffffffff;
  for (char& c : area->text) c = '\xff';
  area->answered = 1;
  PendingList read;
  CHECK_FALSE(ReadPending(*area, 1, &read));
}

}  // namespace
}  // namespace hvd
