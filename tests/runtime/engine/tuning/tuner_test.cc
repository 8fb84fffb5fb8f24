// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/tuning/tuner.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace hvd::rt {
namespace {

using Catch::Matchers::Contains;

class TemporaryFile {
 public:
  explicit TemporaryFile(const char* name) {
    REQUIRE(mkdtemp(folder_) != nullptr);
    path_ = std::string(folder_) + "/" + name;
  }
  ~TemporaryFile() { std::filesystem::remove_all(folder_); }
  const std::string& path() const { return path_; }
  std::string Text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

 private:
  char folder_[32] = "/tmp/hvd-tuner-test.XXXXXX";
  std::string path_;
};

EngineConfig Tuned() {
  EngineConfig config;
  config.autotune = true;
  config.autotune_warmup = 1;
  config.autotune_steps = 2;
  config.autotune_samples = 8;
  return config;
}

// Two ranks go through the same batches; how many decisions until the search is over.
int RunPair(const EngineConfig& start, EngineConfig* first, EngineConfig* second) {
  auto a = Tuner::Make({0, false}, start), b = Tuner::Make({1, false}, start);
  REQUIRE(a.ok());
  REQUIRE(b.ok());
  *first = *second = start;
  for (int decisions = 1; decisions < 100; ++decisions) {
    for (int batch = 0; batch < start.autotune_steps; ++batch) {
      const bool over = (*a)->CountBatch(1000);
      CHECK(over == (batch + 1 == start.autotune_steps));
      CHECK((*b)->CountBatch(1000) == over);
    }
    const TuneDecision decision = (*a)->Decide();
    CHECK((*b)->Decide().point == TunePoint{});  // and writes no file
    const bool more = (*a)->Adopt(decision, first);
    CHECK((*b)->Adopt(decision, second) == more);
    CHECK(PointOf(*first) == PointOf(*second));
    if (!more) return decisions;
  }
  return -1;
}

TEST_CASE("not wanted is no tuner") {
  const auto tuner = Tuner::Make({0, false}, EngineConfig());
  REQUIRE(tuner.ok());
  CHECK(*tuner == nullptr);
}

TEST_CASE("ranks change together, the search ends, and its result is used again") {
  const TemporaryFile log("csv"), result("result");
  EngineConfig config = Tuned();
  config.autotune_log = log.path();
  config.autotune_file = result.path();
  EngineConfig first, second;
  const int decisions = RunPair(config, &first, &second);
  CHECK(decisions > 2);
  CHECK(decisions <= 1 + 8);
  CHECK(result.Text() == FormatResult(PointOf(first)));
  const std::string lines = log.Text();
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 1 + decisions + 1);  // head, result
  CHECK_THAT(lines, Contains("\n1,") && Contains(",warmup\n") && Contains(",result\n"));

  std::ofstream(result.path()) << "HVD_FUSION_THRESHOLD=1M\n";
  CHECK(RunPair(config, &first, &second) == 1);
  CHECK(second.fusion_threshold == 1 << 20);
}

TEST_CASE("a file that holds something else is refused by name") {
  const TemporaryFile other("other");
  std::ofstream(other.path()) << "my notes\n";
  EngineConfig config = Tuned();
  config.autotune_file = other.path();
  const auto tuner = Tuner::Make({0, false}, config);
  REQUIRE(absl::IsInvalidArgument(tuner.status()));
  CHECK_THAT(std::string(tuner.status().message()), Contains(other.path()));
  CHECK(other.Text() == "my notes\n");
}

// Catches what is written to stderr until Text.
class Stderr {
 public:
  Stderr() : before_(dup(STDERR_FILENO)) { dup2(fileno(file_), STDERR_FILENO); }
  ~Stderr() {
    dup2(before_, STDERR_FILENO);
    close(before_);
    fclose(file_);
  }
  std::string Text() const {
    std::string text(static_cast<size_t>(ftell(file_)), '\0');
    rewind(file_);
    text.resize(fread(text.data(), 1, text.size(), file_));
    return text;
  }

 private:
  FILE* const file_ = tmpfile();
  const int before_;
};

TEST_CASE("a log that cannot be written is named once, and the search goes on") {
  const TemporaryFile folder("no such folder");
  EngineConfig config = Tuned();
  config.autotune_log = folder.path() + "/log";
  EngineConfig first, second;
  std::string said;
  int decisions = 0;
  {
    const Stderr errors;
    decisions = RunPair(config, &first, &second);
    said = errors.Text();
  }
  CHECK(decisions > 2);
  CHECK(said == "hvd: cannot write HVD_AUTOTUNE_LOG " + config.autotune_log +
                    ": No such file or directory\n");
}

TEST_CASE("a result that cannot be written is named before the search") {
  const TemporaryFile folder("no such folder");
  EngineConfig config;
  config.autotune = true;
  config.autotune_file = folder.path() + "/result";
  std::string said;
  {
    const Stderr errors;
    CHECK(Tuner::Make({0, false}, config).ok());
    said = errors.Text();
  }
  CHECK(said == "hvd: cannot write HVD_AUTOTUNE_FILE " + config.autotune_file +
                    ": No such file or directory\n");
}

}  // namespace
}  // namespace hvd::rt
