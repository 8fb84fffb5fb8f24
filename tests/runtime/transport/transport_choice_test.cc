// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/transport_choice.h"

#include <catch2/catch.hpp>

#include "runtime/transport/address_head.h"

namespace hvd::rt {
namespace {

const NetDevices kEthernet = {{{"lo", true, false}, {"eth0", false, true}}, {}};
const NetDevices kWithRdma = {{{"lo", true, false}, {"eth0", false, true}}, {"mlx5_0:1"}};

TEST_CASE("UCX carries where RDMA is active, TCP elsewhere, and what the user says everywhere") {
  CHECK(ChooseTransport({}, kEthernet, true).kind == "tcp");
  CHECK(ChooseTransport({}, kWithRdma, true).kind == "ucx");
  CHECK(ChooseTransport({}, kWithRdma, false).kind == "tcp");
  CHECK(ChooseTransport({"ucx", ""}, kEthernet, true).kind == "ucx");
  CHECK(ChooseTransport({"tcp", ""}, kWithRdma, true).kind == "tcp");
  CHECK(ChooseTransport({"", "eth0"}, kWithRdma, true).kind == "tcp");
  CHECK(ChooseTransport({"", "mlx5_1:1,mlx5_0:1"}, kWithRdma, true).kind == "ucx");
  CHECK(ChooseTransport({"", "all"}, kWithRdma, true).kind == "ucx");
}

std::string Refusal(const std::string& address) {
  return std::string(TakeAddressHead({"tcp", 0, 7}, 3, address).status().message());
}

TEST_CASE("ranks that chose different transports are told both, and what to set") {
  const std::string said = Refusal(PutAddressHead({"ucx", 3, 7}, "bytes"));
  CHECK(said.find("rank 0 sends over tcp and rank 3 over ucx") == 0);
  CHECK(said.find("set HVD_TRANSPORT=tcp for all") != std::string::npos);
}

TEST_CASE("an address gives back what was put in; one of another rank, epoch or none is refused") {
  const std::string rest("with blanks \0 and zeros", 23);
  const auto given = TakeAddressHead({"tcp", 0, 7}, 3, PutAddressHead({"tcp", 3, 7}, rest));
  REQUIRE(given.ok());
  CHECK(*given == rest);
  CHECK(Refusal(PutAddressHead({"tcp", 3, 8}, "x")).find("another epoch or rank") !=
        std::string::npos);
  CHECK(Refusal(PutAddressHead({"tcp", 30, 7}, "x")).find("another epoch or rank") !=
        std::string::npos);
  CHECK(Refusal("") == "rank 3 has sent no address");
  CHECK(Refusal("tcp") == "rank 3 has sent no address");
  CHECK(Refusal("tcp 3").find("another epoch or rank") != std::string::npos);
}

}  // namespace
}  // namespace hvd::rt
