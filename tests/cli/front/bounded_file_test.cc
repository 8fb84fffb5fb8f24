// SPDX-License-Identifier: Apache-2.0
#include "cli/front/bounded_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "hostfile/host_slots.h"

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;

// A directory of this test's own; gone with it.
class Folder {
 public:
  Folder() : path_(mkdtemp(name_)) {}
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  char name_[32] = "/tmp/hvd_cli_test.XXXXXX";
  std::string path_;
};

TEST_CASE("a file is read whole") {
  const Folder folder;
  std::ofstream(folder / "hosts") << "a slots=2\nb\n";
  CHECK(*ReadBoundedFile(folder / "hosts") == "a slots=2\nb\n");
}

TEST_CASE("what cannot be read is named") {
  const Folder folder;
  CHECK_THAT(std::string(ReadBoundedFile(folder / "nope").status().message()),
             Contains("nope cannot be read: No such file"));
  CHECK_THAT(std::string(ReadBoundedFile("/tmp").status().message()), Contains("Is a directory"));
}

TEST_CASE("endless files and mute pipes end") {
  const Folder folder;
  const auto zeros = ReadBoundedFile("/dev/zero");
  REQUIRE(zeros.ok());
  CHECK(zeros->size() > kMaxHostfileBytes);
  CHECK(zeros->size() < kMaxHostfileBytes + (1 << 20));
  REQUIRE(mkfifo((folder / "fifo").c_str(), 0600) == 0);
  CHECK(*ReadBoundedFile(folder / "fifo") == "");
}

TEST_CASE("a pipe is read to its end") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  REQUIRE(write(ends[1], "a:2\n", 4) == 4);
  close(ends[1]);
  CHECK(*ReadBoundedFile("/proc/self/fd/" + std::to_string(ends[0])) == "a:2\n");
  close(ends[0]);
}

}  // namespace
}  // namespace hvd::cli
