// SPDX-License-Identifier: Apache-2.0
#include "cli/reach/hello_reader.h"

#include <catch2/catch.hpp>
#include <string>

namespace hvd::cli {
namespace {

const std::string kMarker = "0123456789abcdef0123456789abcdef";
const std::string kHello = kMarker + " 1 0.1.0\n";

TEST_CASE("a hello alone is found, and not one byte behind it is taken") {
  const HelloScan scan = ScanHello(kHello + "gRPC bytes", kMarker);
  CHECK(scan.state == HelloScan::kFound);
  CHECK(scan.noise == 0);
  CHECK(scan.consume == kHello.size());
  CHECK(scan.hello.protocol == 1);
  CHECK(scan.hello.version == "0.1.0");
}

TEST_CASE("noise before the marker is counted, even without a newline") {
  const HelloScan scan = ScanHello("motd\nprompt$ " + kHello, kMarker);
  CHECK(scan.state == HelloScan::kFound);
  CHECK(scan.noise == 13);
  CHECK(scan.consume == 13 + kHello.size());
}

TEST_CASE("however the bytes are cut, the same hello comes out") {
  const std::string all = "noise 0123" + kHello;
  for (size_t cut = 0; cut < all.size(); ++cut) {
    const HelloScan first = ScanHello(all.substr(0, cut), kMarker);
    REQUIRE(first.state == HelloScan::kMore);
    REQUIRE(first.noise <= 10);
    const HelloScan second = ScanHello(all.substr(first.noise), kMarker);
    REQUIRE(second.state == HelloScan::kFound);
    REQUIRE(first.noise + second.consume == all.size());
  }
}

TEST_CASE("a tail that only looks like the marker's beginning stays") {
  CHECK(ScanHello("abc0123", kMarker).noise == 3);
  CHECK(ScanHello("abc0124", kMarker).noise == 7);
  CHECK(ScanHello("", kMarker).noise == 0);
}

TEST_CASE("a marker without a hello is garbled") {
  CHECK(ScanHello(kMarker + " one two\n", kMarker).state == HelloScan::kGarbled);
  CHECK(ScanHello(kMarker + std::string(300, 'x'), kMarker).state == HelloScan::kGarbled);
}

TEST_CASE("gRPC begins with SETTINGS") {
  CHECK(IsSettingsFrame(std::string("\0\0\x24\x04\0\0\0\0\0rest", 13)));
  CHECK_FALSE(IsSettingsFrame(std::string("\0\0\x24\x04\0\0\0\0", 8)));
  CHECK_FALSE(IsSettingsFrame(std::string("\0\0\x24\x04\1\0\0\0\0", 9)));
  CHECK_FALSE(IsSettingsFrame(std::string("\0\0\x24\x04\0\0\0\0\1", 9)));
  CHECK_FALSE(IsSettingsFrame("backup finished"));
}

}  // namespace
}  // namespace hvd::cli
