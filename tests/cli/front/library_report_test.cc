// SPDX-License-Identifier: Apache-2.0
#include "cli/front/library_report.h"

#include <catch2/catch.hpp>

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;

LibraryReport Probe(const std::string& name) {
  return ProbeLibrary(HVD_TEST_LIBRARIES "/" + name + ".so");
}

TEST_CASE("a library says what it can do") {
  const LibraryReport report = Probe("test_cli_library_good");
  CHECK(report.problem.empty());
  CHECK(report.info ==
        std::map<std::string, std::string>{
            {"version", "9.8.7"}, {"ucx", "1.13.1"}, {"nccl", ""}, {"kernels", "avx2"}});
}

TEST_CASE("a library that crashes, is foreign or is missing is reported, not suffered") {
  CHECK_THAT(Probe("test_cli_library_crashing").problem, Contains("crashes when it is loaded"));
  CHECK_THAT(Probe("test_cli_library_mute").problem, Contains("no hvd_build_info"));
  CHECK_THAT(Probe("nothing").problem, Contains("missing at"));
  CHECK_THAT(ProbeLibrary("/proc/self/status").problem, Contains("/proc/self/status"));
}

TEST_CASE("build info is lines of name=value") {
  using Info = std::map<std::string, std::string>;
  CHECK(ParseBuildInfo("a=1\nb=x=y\nc=\n") == Info{{"a", "1"}, {"b", "x=y"}, {"c", ""}});
  CHECK(ParseBuildInfo("odd\n=1\na=2") == Info{{"a", "2"}});
  CHECK(ParseBuildInfo("").empty());
}

}  // namespace
}  // namespace hvd::cli
