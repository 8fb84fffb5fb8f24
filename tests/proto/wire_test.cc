// SPDX-License-Identifier: Apache-2.0
#include "proto/wire.h"

#include <catch2/catch.hpp>

#include "hvd/v1/link_b.pb.h"

namespace hvd {
namespace {

TEST_CASE("protobuf reads what the writer writes") {
  WireWriter address;
  address.Number(1, 1ull << 40).Bytes(2, std::string("a\0b", 3));
  v1::ToDaemon message;
  REQUIRE(message.ParseFromString(WireWriter().Bytes(3, address.bytes()).bytes()));
  CHECK(message.address().epoch() == 1ull << 40);
  CHECK(message.address().address() == std::string("a\0b", 3));
}

TEST_CASE("the reader reads what protobuf writes") {
  v1::Table table;
  table.set_epoch(300);
  table.add_addresses("x");
  table.add_addresses("");
  const std::string bytes = table.SerializeAsString();
  WireReader reader(bytes);
  REQUIRE(reader.Next());
  CHECK(reader.field() == 1);
  CHECK(reader.number() == 300);
  REQUIRE(reader.Next());
  CHECK(reader.bytes() == "x");
  REQUIRE(reader.Next());
  CHECK(reader.bytes().empty());
  CHECK_FALSE(reader.Next());
  CHECK(reader.ok());
}

TEST_CASE("packed numbers survive, negative ones too") {
  const std::vector<int64_t> values = {0, -1, 127, 128, INT64_MAX, INT64_MIN};
  const WireWriter writer = WireWriter().Packed(7, values);
  WireReader reader(writer.bytes());
  REQUIRE(reader.Next());
  std::vector<int64_t> back;
  REQUIRE(reader.Packed(&back));
  CHECK(back == values);
}

TEST_CASE("any bytes end in an answer") {
  unsigned random = 1;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(rand_r(&random) % 40, 0);
    for (char& c : bytes) c = static_cast<char>(rand_r(&random));
    WireReader reader(bytes);
    int fields = 0;
    while (reader.Next()) ++fields;
    REQUIRE(fields <= 40);
  }
  WireReader cut(
      "\x0a\x05"
      "ab");
  CHECK_FALSE(cut.Next());
  CHECK_FALSE(cut.ok());
}

}  // namespace
}  // namespace hvd
