// SPDX-License-Identifier: Apache-2.0
#include "cli/report/job_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

namespace hvd::cli {
namespace {

JobFacts Facts() {
  JobFacts facts = FactsOf(Topology({{"al\"pha", 2}}));
  facts.job = "00ff";
  facts.hosts[0].containment = v1::CONTAINMENT_NAMESPACE;
  facts.ranks[1].phase = RankFact::kExited;
  facts.ranks[1].exit.set_exit_code(7);
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  facts.ranks[1].exit.add_last_lines(bytes);
  return facts;
}

TEST_CASE("a parser reads the report") {
  if (system("command -v python3 >/dev/null") != 0) {
    WARN("SKIP: no python3");
    return;
  }
  const JobFacts facts = Facts();
  FILE* python = popen(
      "python3 -c 'import json,sys; j=json.load(sys.stdin); "
      "assert j[\"exit_code\"]==7 and j[\"culprit\"][\"rank\"]==1; "
      "assert j[\"ranks\"][1][\"exit_code\"]==7 and len(j[\"ranks\"][1][\"last_lines\"])==1; "
      "assert j[\"hosts\"][0][\"containment\"]==\"namespace\"'",
      "w");
  const std::string report = RenderJobReport(facts, Judge(facts));
  fwrite(report.data(), 1, report.size(), python);
  CHECK(WEXITSTATUS(pclose(python)) == 0);
}

TEST_CASE("an elastic job's report has its epochs, and all members that it had") {
  JobFacts facts = Facts();
  facts.elastic = true;
  facts.epochs = {{1, 2, 1, "", 0, false, 0}, {2, 1, 1, "h lost", 41, true, 0.25}};
  facts.ranks[1].past = true;
  const std::string report = RenderJobReport(facts, Judge(facts));
  const auto has = [&report](const std::string& part) {
    INFO(report);
    CHECK(report.find(part) != std::string::npos);
  };
  has(R"("epochs":[)");
  has(R"({"number":2,"ranks":1,"hosts":1,"cause":"h lost","commit":41,"rolled_back":true,)"
      R"("seconds":0.25})");
  has(R"("member":2)");
  // The rank that was replaced is no culprit.
  has(R"("exit_code":0)");
  has(R"("culprit":null)");
}

TEST_CASE("the file appears whole, in a directory made for it") {
  char path[] = "/tmp/hvd-job-report.XXXXXX";
  const std::string root = mkdtemp(path);
  CHECK(WriteJobReport(root + "/a/b", "{}\n").ok());
  std::string text;
  std::getline(std::ifstream(root + "/a/b/job.json"), text);
  CHECK(text == "{}");
  CHECK(std::distance(std::filesystem::directory_iterator(root + "/a/b"), {}) == 1);
  CHECK_FALSE(WriteJobReport("/proc/nowhere", "{}").ok());
  std::ofstream(root + "/file") << "no directory";
  CHECK(WriteJobReport(root + "/file/b", "{}").message() ==
        "cannot make " + root + "/file/b: Not a directory");
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace hvd::cli
