// SPDX-License-Identifier: Apache-2.0
#include "placement/nvml.h"

#include <catch2/catch.hpp>
#include <cstdlib>

namespace hvd {
namespace {

CardSearch Find(const char* cards) {
  setenv("HVD_STAND_IN_NVML", cards, 1);
  return FindCards(HVD_STAND_IN_NVML);
}

TEST_CASE("cards in the order of the bus, without the one that does not answer") {
  const CardSearch search = Find(
      "GPU-1 bus=9A name=NVIDIA_A near=0-2,64,1000; GPU-2 bus=0B; GPU-3 lost; GPU-4 bus=1A near=0");
  CHECK(search.problem.empty());
  REQUIRE(search.cards.size() == 3);
  CHECK(search.cards[0].gpu.uuid == "GPU-2");
  CHECK(search.cards[1].gpu.uuid == "GPU-4");
  CHECK(search.cards[2].bus_id == "00000000:9A:00.0");
  CHECK(search.cards[2].gpu.name == "NVIDIA A");
  CHECK(search.cards[2].gpu.near_cores == std::vector<int>{0, 1, 2, 64, 1000});
  CHECK(search.cards[0].gpu.near_cores.empty());
  CHECK_FALSE(search.cards[0].in_mig_mode);
}

TEST_CASE("a card in MIG mode has instances as near as itself") {
  const CardSearch search = Find("GPU-1 near=2-3 mig=MIG-a,,MIG-b;GPU-2 mig=");
  REQUIRE(search.cards.size() == 2);
  CHECK(search.cards[0].in_mig_mode);
  REQUIRE(search.cards[0].instances.size() == 2);
  CHECK(search.cards[0].instances[1].uuid == "MIG-b");
  CHECK(search.cards[0].instances[1].name == "NVIDIA Stand-in MIG");
  CHECK(search.cards[0].instances[1].near_cores == std::vector<int>{2, 3});
  CHECK(search.cards[1].in_mig_mode);
  CHECK(search.cards[1].instances.empty());
}

TEST_CASE("why no cards can be found") {
  const CardSearch none = Find("");
  CHECK(none.cards.empty());
  CHECK(none.problem.empty());
  CHECK(Find("fails=9; GPU-1").cards.empty());
  CHECK(Find("fails=9").problem == "NVML does not start: Driver Not Loaded");
  const CardSearch gone = FindCards("/nonexistent/libnvidia-ml.so.1");
  CHECK(gone.cards.empty());
  CHECK(gone.problem.find("/nonexistent/libnvidia-ml.so.1: cannot open") == 0);
  const CardSearch foreign = FindCards("libc.so.6");
  CHECK(foreign.problem == "libc.so.6 is too old, or not NVIDIA's");
}

TEST_CASE("NVML's own header is there to compare with (nvml_abi_test.cc)") {
  if (HVD_NVML_HEADER_FOUND) return;
  WARN("SKIP: no nvml.h in /usr/local/cuda/include (pip's nvidia-nvml-dev-cu12 has it, too)");
}

}  // namespace
}  // namespace hvd
