#include "daemon/job/nvml.h"

#include <catch2/catch.hpp>

namespace hvd {
namespace {

using Uuids = std::vector<std::string>;

TEST_CASE("cards in the order of the bus, without the one that does not answer") {
  const std::vector<Gpu> gpus = FindGpus(HVD_FAKE_NVML);
  REQUIRE(gpus.size() == 3);
  CHECK(gpus[0].uuid == "GPU-40000000-aaaa");
  CHECK(gpus[1].uuid == "GPU-20000000-aaaa");
  CHECK(gpus[2].uuid == "GPU-10000000-aaaa");
}

TEST_CASE("no library, no cards") { CHECK(FindGpus("/nonexistent/libnvidia-ml.so.1").empty()); }

TEST_CASE("an inherited CUDA_VISIBLE_DEVICES selects inside the host") {
  const std::vector<Gpu> gpus = {{"GPU-aaaa1", "1"}, {"GPU-bbbb2", "2"}, {"GPU-cccc3", "3"}};
  CHECK(VisibleGpus(gpus, nullptr) == Uuids{"GPU-aaaa1", "GPU-bbbb2", "GPU-cccc3"});
  CHECK(VisibleGpus(gpus, "2, 0") == Uuids{"GPU-cccc3", "GPU-aaaa1"});
  CHECK(VisibleGpus(gpus, "GPU-bbbb") == Uuids{"GPU-bbbb2"});
  CHECK(VisibleGpus(gpus, "1,-1,0") == Uuids{"GPU-bbbb2"});
  CHECK(VisibleGpus(gpus, "").empty());
}

}  // namespace
}  // namespace hvd
