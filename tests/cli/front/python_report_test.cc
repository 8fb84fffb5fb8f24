// SPDX-License-Identifier: Apache-2.0
#include "cli/front/python_report.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;

// A folder with a "python3" that is a script.
class Pythons {
 public:
  explicit Pythons(const std::string& script) {
    REQUIRE(mkdtemp(folder_) != nullptr);
    std::ofstream(path()) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(path(), std::filesystem::perms::owner_all);
  }
  ~Pythons() { std::filesystem::remove_all(folder_); }

  std::string folder() const { return folder_; }
  std::string path() const { return folder() + "/python3"; }

 private:
  char folder_[32] = "/tmp/hvd-pythons.XXXXXX";
};

PythonReport Probe(const std::string& script,
                   std::chrono::milliseconds patience = std::chrono::seconds(60)) {
  const Pythons python(script);
  PythonReport report = ProbePython({python.path(), "/package", "/libraries", patience});
  if (!report.python.problem.empty()) CHECK(report.path == python.path());
  return report;
}

TEST_CASE("a Python's answer is its lines between whatever else it prints") {
  bool whole = false;
  const PythonReport report = ParsePythonAnswer(
      "a warning\n"
      "hvd-frameworks\tpython\t3.11.2\t\t/x/python3\n"
      "hvd-frameworks\tpackage\t/x/hvd\n"
      "TensorFlow\t1.0\n"
      "hvd-frameworks\tframework\tTensorFlow\t2.21.0\t\n"
      "hvd-frameworks\tframework\tJAX\t0.4.1\thvd.jax needs \x1b[31m0.10\n"
      "hvd-frameworks\tframework\n"
      "hvd-frameworks\tnews\tof a later hvd\n"
      "hvd-frameworks\tend\n",
      &whole);
  CHECK(whole);
  CHECK(report.python.version == "3.11.2");
  CHECK(report.python.problem.empty());
  CHECK(report.path == "/x/python3");
  CHECK(report.package == "/x/hvd");
  CHECK(report.frameworks.at("TensorFlow").version == "2.21.0");
  CHECK(report.frameworks.at("TensorFlow").problem.empty());
  CHECK(report.frameworks.at("JAX").problem == "hvd.jax needs \\x1b[31m0.10");
  ParsePythonAnswer("hvd-frameworks\tpython\t3.11.2\t\t/x/python3\n", &whole);
  CHECK_FALSE(whole);
}

TEST_CASE("the file of the package is run, and told where libhvd is") {
  const PythonReport report = Probe(
      R"(printf 'hvd-frameworks\tpython\t3.1\t\t%s %s\nhvd-frameworks\tend\n' "$3" "$4"; sleep 1000)");
  CHECK(report.path == "/package/_frameworks.py /libraries");
  CHECK(report.python.problem.empty());
}

TEST_CASE("a Python that gives no answer is said in words") {
  CHECK_THAT(Probe("echo first >&2; echo 'last words' >&2; exit 3").python.problem,
             EndsWith("/python3 exited with code 3: last words"));
  CHECK_THAT(Probe("kill -SEGV $$").python.problem, Contains("/python3 was killed by signal 11"));
  CHECK_THAT(Probe("echo garbage").python.problem,
             EndsWith("/python3 says nothing of frameworks: garbage"));
  CHECK_THAT(Probe("sleep 1000", std::chrono::milliseconds(50)).python.problem,
             EndsWith("/python3 gives no answer within 0.05 s"));
  CHECK_THAT(Probe("while echo yes; do :; done").python.problem,
             Contains("/python3 does not stop talking"));
  const PythonReport missing = ProbePython({"/nowhere/python3", "/package", "/libraries"});
  CHECK(missing.python.problem == "/nowhere/python3 cannot be executed: No such file or directory");
}

TEST_CASE("the Python is the one that HVD_PYTHON names, else the first python3 of PATH") {
  const Pythons one("exit 0"), two("exit 0");
  const std::string path = "PATH=/nowhere:" + one.folder() + ":" + two.folder();
  CHECK(FindPython({path}) == one.path());
  CHECK(FindPython({path, "HVD_PYTHON=/mine"}) == "/mine");
  CHECK(FindPython({path, "HVD_PYTHON="}) == one.path());
  std::filesystem::permissions(one.path(), std::filesystem::perms::owner_read);
  CHECK(FindPython({path}) == two.path());
  CHECK(FindPython({"PATH=/nowhere"}).empty());
  CHECK(FindPython({}).empty());
}

}  // namespace
}  // namespace hvd::cli
