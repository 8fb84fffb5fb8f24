// SPDX-License-Identifier: Apache-2.0
#include "cli/console/rank_files.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/descriptor.h"

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;

class Scratch {
 public:
  Scratch() {
    char name[] = "/tmp/hvd-test.XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

std::string Text(const std::string& path) {
  std::ifstream file(path);
  REQUIRE(file.is_open());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Rings for as long as something waits.
void AwaitAll(const RankFiles& files, int bell) {
  while (files.waiting() > 0) {
    pollfd wait = {bell, POLLIN, 0};
    poll(&wait, 1, -1);
    eventfd_t rings;
    eventfd_read(bell, &rings);
  }
}

TEST_CASE("a rank's folder has as many digits as the last one's") {
  CHECK(RankFolder(0, 1) == "rank.0");
  CHECK(RankFolder(9, 10) == "rank.9");
  CHECK(RankFolder(0, 11) == "rank.00");
  CHECK(RankFolder(123, 1000) == "rank.123");
}

TEST_CASE("bytes go to the file of their stream, and an end makes an empty one") {
  const Scratch scratch;
  const Descriptor bell(eventfd(0, EFD_CLOEXEC));
  std::filesystem::create_directories(scratch / "out/rank.0");
  std::ofstream(scratch / "out/rank.0/stdout") << "of a run before, and longer than this one";
  RankFiles files(scratch / "out", 2, bell.get());
  files.Put(0, false, "one\n", false);
  files.Put(1, true, "err", false);
  files.Put(0, false, "two\n", true);
  files.Put(0, true, "", true);
  files.Put(7, true, "of no rank", true);
  AwaitAll(files, bell.get());
  CHECK(files.failure().empty());
  CHECK(Text(scratch / "out/rank.0/stdout") == "one\ntwo\n");
  CHECK(Text(scratch / "out/rank.0/stderr").empty());
  CHECK(Text(scratch / "out/rank.1/stderr") == "err");
  CHECK_FALSE(std::filesystem::exists(scratch / "out/rank.7"));
}

TEST_CASE("a file that cannot be written is named, and nothing waits for it") {
  const Scratch scratch;
  const Descriptor bell(eventfd(0, EFD_CLOEXEC));
  std::ofstream(scratch / "out") << "not a directory";
  RankFiles files(scratch / "out", 20, bell.get());
  files.Put(3, false, "lost", false);
  AwaitAll(files, bell.get());
  CHECK_THAT(files.failure(), Contains("cannot write " + (scratch / "out") + "/rank.03/stdout: "));
  files.Put(3, false, "lost, too", false);
  CHECK(files.waiting() == 0);
}

}  // namespace
}  // namespace hvd::cli
