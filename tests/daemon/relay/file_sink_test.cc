// SPDX-License-Identifier: Apache-2.0
#include "daemon/relay/file_sink.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "daemon/watch/oom_watch.h"
#include "tests/support/patience.h"

namespace hvd::daemon {
namespace {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    char name[] = "/tmp/hvd-test-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string Read(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TimePoint Soon() { return Clock::now() + std::chrono::milliseconds(PatientMs(5000)); }

TEST_CASE("a sink makes its directories for the user alone and writes everything") {
  const TemporaryDirectory base;
  std::string failure;
  FileSinkOptions options{base.path() + "/out", "rank.0003", "stdout", [] {},
                          [&](const std::string& why) { failure = why; }};
  FileSink sink(options);
  std::string all;
  for (int i = 0; i < 1000; ++i) {
    all += std::to_string(i) + "\n";
    sink.Append(std::to_string(i) + "\n");
  }
  REQUIRE(sink.Finish(Soon()));
  CHECK(Read(base.path() + "/out/rank.0003/stdout") == all);
  CHECK(failure.empty());
  struct stat about {};
  stat((base.path() + "/out/rank.0003").c_str(), &about);
  CHECK((about.st_mode & 0777) == 0700);
  stat((base.path() + "/out/rank.0003/stdout").c_str(), &about);
  CHECK((about.st_mode & 0777) == 0600);
}

TEST_CASE("a rank's later worker appends to its file, a first one begins it anew") {
  const TemporaryDirectory base;
  const auto write = [&base](const std::string& text, bool appends) {
    FileSinkOptions options{base.path(), "rank.0000", "stdout", [] {}, [](const std::string&) {}};
    options.appends = appends;
    FileSink sink(options);
    sink.Append(text);
    REQUIRE(sink.Finish(Soon()));
  };
  write("of a job before\n", false);
  write("first\n", false);
  write("second\n", true);
  CHECK(Read(base.path() + "/rank.0000/stdout") == "first\nsecond\n");
}

TEST_CASE("two workers of a rank, one of whom still ends, lose nothing of each other's") {
  const TemporaryDirectory base;
  FileSinkOptions options{base.path(), "rank.0000", "stdout", [] {}, [](const std::string&) {}};
  options.shared = true;
  FileSink old(options);
  old.Append("first\n");
  const std::string path = base.path() + "/rank.0000/stdout";
  for (const TimePoint end = Soon(); Read(path) != "first\n" && Clock::now() < end;) {
    poll(nullptr, 0, 2);
  }
  REQUIRE(Read(path) == "first\n");
  options.appends = true;
  FileSink next(options);
  next.Append("second\n");
  REQUIRE(next.Finish(Soon()));
  old.Append("last of the first\n");
  REQUIRE(old.Finish(Soon()));
  CHECK(Read(base.path() + "/rank.0000/stdout") == "first\nsecond\nlast of the first\n");
}

TEST_CASE("a full disk disables the sink with one word, and its reader goes on") {
  // A limit stands for the disk: SIGXFSZ is ignored, as hvdd has it.
  const TemporaryDirectory base;
  signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit none{0, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &none);
  int failures = 0;
  std::string failure;
  FileSinkOptions options{base.path(), "rank.0000", "stdout", [] {},
                          [&](const std::string& why) {
                            ++failures;
                            failure = why;
                          }};
  {
    FileSink sink(options);
    sink.Append("lost");
    sink.Append("lost");
    REQUIRE(sink.Finish(Soon()));
    CHECK(!sink.healthy());
    CHECK(sink.Room() > FileSink::kRoom);
  }
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK(failures == 1);
  CHECK(failure.find("File too large") != std::string::npos);
}

TEST_CASE("a link in the place of the file is not followed") {
  const TemporaryDirectory base;
  std::ofstream(base.path() + "/victim") << "precious";
  std::filesystem::create_directory(base.path() + "/rank.0000");
  std::filesystem::create_symlink(base.path() + "/victim", base.path() + "/rank.0000/stdout");
  std::string failure;
  {
    FileSink sink({base.path(), "rank.0000", "stdout", [] {},
                   [&](const std::string& why) { failure = why; }});
    sink.Append("overwritten");
  }
  CHECK(failure.find("rank.0000/stdout: it is a symbolic link") != std::string::npos);
  CHECK(Read(base.path() + "/victim") == "precious");
}

TEST_CASE("out-of-memory kills are counted since the last look") {
  const TemporaryDirectory base;
  const std::string file = base.path() + "/memory.events";
  std::ofstream(file) << "low 0\noom 3\noom_kill 2\n";
  OomWatch watch(file);
  CHECK(!watch.StruckSince());
  std::ofstream(file) << "low 0\noom 3\noom_kill 3\n";
  CHECK(watch.StruckSince());
  CHECK(!watch.StruckSince());
  CHECK(!OomWatch("/nonexistent").StruckSince());
}

TEST_CASE("a sink that moves goes on at the end of the other file, and leaves the first whole") {
  const TemporaryDirectory base;
  for (const bool first : {true, false}) {
    FileSinkOptions options{base.path(), "rank.0001", "stdout", [] {}, [](const auto&) {}};
    options.appends = !first;
    options.shared = true;
    FileSink sink(options);
    sink.Append("as 1\n");
    sink.MoveTo("rank.0000");
    CHECK(sink.path() == base.path() + "/rank.0000/stdout");
    sink.Append("as 0\n");
    sink.MoveTo("rank.0000");
    sink.Append("still\n");
    REQUIRE(sink.Finish(Soon()));
    CHECK(sink.healthy());
  }
  CHECK(Read(base.path() + "/rank.0001/stdout") == "as 1\nas 1\n");
  CHECK(Read(base.path() + "/rank.0000/stdout") == "as 0\nstill\nas 0\nstill\n");
}

TEST_CASE("a sink that cannot move has failed, with the place that it was to have") {
  const TemporaryDirectory base;
  std::ofstream(base.path() + "/rank.0000") << "a file";
  FileSink sink({base.path(), "rank.0001", "stdout", [] {}, [](const auto&) {}});
  sink.Append("as 1\n");
  sink.MoveTo("rank.0000");
  sink.Append("as 0\n");
  REQUIRE(sink.Finish(Soon()));
  CHECK(sink.failure().find("rank.0000/stdout") != std::string::npos);
  CHECK(Read(base.path() + "/rank.0001/stdout") == "as 1\n");
}

}  // namespace
}  // namespace hvd::daemon
