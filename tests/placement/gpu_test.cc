// SPDX-License-Identifier: Apache-2.0
#include "placement/gpu.h"

#include <catch2/catch.hpp>

namespace hvd {
namespace {

using Uuids = std::vector<std::string>;

const std::vector<GpuCard> kCards = {
    {"01", {"GPU-aaaa1", "A"}},
    {"02", {"GPU-abbb2", "A"}},
    {"03", {"GPU-cccc3", "A"}, true, {{"MIG-11", "M"}, {"MIG-12", "M"}}},
    {"04", {"GPU-dddd4", "A"}, true}};

Uuids Visible(const std::optional<std::string>& mask) {
  Uuids uuids;
  for (const Gpu& gpu : VisibleGpus(kCards, mask)) uuids.push_back(gpu.uuid);
  return uuids;
}

TEST_CASE("without a mask all are there, instances in the place of a card in MIG mode") {
  CHECK(Visible(std::nullopt) == Uuids{"GPU-aaaa1", "GPU-abbb2", "MIG-11", "MIG-12"});
}

TEST_CASE("a mask names by index, UUID, or the beginning of one, in its own order") {
  CHECK(Visible("1, 0") == Uuids{"GPU-abbb2", "GPU-aaaa1"});
  CHECK(Visible("GPU-ab,GPU-aaaa1") == Uuids{"GPU-abbb2", "GPU-aaaa1"});
  CHECK(Visible("MIG-12,0") == Uuids{"MIG-12", "GPU-aaaa1"});
  CHECK(Visible("2") == Uuids{"MIG-11", "MIG-12"});
  CHECK(Visible("GPU-c,1") == Uuids{"MIG-11", "MIG-12", "GPU-abbb2"});
  CHECK(Visible("3,1") == Uuids{"GPU-abbb2"});
}

TEST_CASE("the first entry that names none ends the list") {
  CHECK(Visible("1,4,0") == Uuids{"GPU-abbb2"});
  CHECK(Visible("1,-1,0") == Uuids{"GPU-abbb2"});
  for (const char* none : {"", "-1", " ", "GPU-a,0", "GPU-,0", "MIG-1,0", "MIG-,0", "GPU-aaaa12",
                           "x,0", "1x", "aaaa1", "NoDevFiles"}) {
    CAPTURE(none);
    CHECK(Visible(none).empty());
  }
}

TEST_CASE("what is named twice is there once, and a whole name beats a beginning") {
  CHECK(Visible("0,GPU-aaaa1,1") == Uuids{"GPU-aaaa1", "GPU-abbb2"});
  CHECK(Visible("MIG-12,2") == Uuids{"MIG-12", "MIG-11"});
  const std::vector<GpuCard> old = {
      {"01", {"GPU-a", "A"}, true, {{"MIG-GPU-a/1/1", "M"}, {"MIG-GPU-a/1/10", "M"}}}};
  const std::vector<Gpu> chosen = VisibleGpus(old, "MIG-GPU-a/1/1");
  REQUIRE(chosen.size() == 1);
  CHECK(chosen[0].uuid == "MIG-GPU-a/1/1");
}

TEST_CASE("hvd's own variable counts before CUDA's") {
  CHECK(InheritedMask({}) == std::nullopt);
  CHECK(InheritedMask({"CUDA_VISIBLE_DEVICES_X=1", "CUDA_VISIBLE_DEVICES=0,1"}) == "0,1");
  CHECK(InheritedMask({"CUDA_VISIBLE_DEVICES=0,1", "HVD_CUDA_VISIBLE_DEVICES="}) == "");
}

TEST_CASE("a person is shown the beginning of a UUID") {
  CHECK(ShortUuid("GPU-1a2b3c4d-1111-2222") == "GPU-1a2b3c4d");
  CHECK(ShortUuid("MIG-1a2b3c4d-1111-2222") == "MIG-1a2b3c4d");
  CHECK(ShortUuid("MIG-GPU-1a2b3c4d-1111/3/0") == "MIG-GPU-1a2b3c4d-1111/3/0");
  CHECK(ShortUuid("odd") == "odd");
}

}  // namespace
}  // namespace hvd
