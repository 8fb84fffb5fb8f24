// SPDX-License-Identifier: Apache-2.0
#include "base/own_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace hvd {
namespace {

constexpr uid_t kOther = 12345;

// A directory where anybody may make files, and nobody take away another's.
class Shared {
 public:
  Shared() : path(mkdtemp(name_)) { chmod(path.c_str(), 01777); }
  ~Shared() { std::filesystem::remove_all(path); }

 private:
  char name_[24] = "/tmp/hvd-test-XXXXXX";

 public:
  const std::string path;
};

std::string WhyDirectory(const std::string& path) {
  const absl::StatusOr<int> opened = OpenOwnDirectory(path, true);
  if (opened.ok()) close(*opened);
  return std::string(opened.status().message());
}

std::string WhySubdirectory(const std::string& path, const std::string& name) {
  const int directory = OpenOwnDirectory(path, false).value();
  const absl::StatusOr<int> opened = OpenOwnSubdirectory(directory, name);
  if (opened.ok()) close(*opened);
  close(directory);
  return std::string(opened.status().message());
}

std::string WhyFile(const std::string& path, const std::string& name) {
  const int directory = OpenOwnDirectory(path, false).value();
  const absl::StatusOr<int> opened = OpenOwnFile(directory, name);
  if (opened.ok()) close(*opened);
  close(directory);
  return std::string(opened.status().message());
}

unsigned ModeOf(const std::string& path) {
  struct stat about {};
  stat(path.c_str(), &about);
  return about.st_mode & 07777;
}

TEST_CASE("what is made is for this user alone, and is taken again") {
  const Shared shared;
  for (int i = 0; i < 2; ++i) {
    CHECK(WhyDirectory(shared.path + "/a/b") == "");
    CHECK(WhySubdirectory(shared.path + "/a/b", "c") == "");
    CHECK(WhyFile(shared.path + "/a/b/c", "file") == "");
  }
  CHECK(ModeOf(shared.path + "/a/b/c") == 0700);
  CHECK(ModeOf(shared.path + "/a/b/c/file") == 0600);
}

TEST_CASE("no link is written through; one's own may lead to a directory") {
  const Shared shared;
  std::filesystem::create_directory(shared.path + "/real");
  std::filesystem::create_symlink("real", shared.path + "/own");
  CHECK(WhyDirectory(shared.path + "/own") == "");
  CHECK(WhySubdirectory(shared.path, "own") == "own is a symbolic link");
  CHECK(WhyFile(shared.path, "own") == "it is a symbolic link");
  std::ofstream(shared.path + "/real/file") << "x";
  std::filesystem::create_hard_link(shared.path + "/real/file", shared.path + "/other");
  CHECK(WhyFile(shared.path, "other") == "it has more than one name (hard links)");
  mkfifo((shared.path + "/fifo").c_str(), 0600);
  CHECK(WhyFile(shared.path, "fifo") == "it is no regular file");
  CHECK(WhyFile("/dev", "full") == "it is no regular file");
}

TEST_CASE("what another user has prepared is refused") {
  if (geteuid() != 0) {
    WARN("SKIP: needs root, to make another user's files");
    return;
  }
  const Shared shared;
  REQUIRE(setegid(kOther) == 0);
  REQUIRE(seteuid(kOther) == 0);
  std::filesystem::create_symlink("/root", shared.path + "/link");
  std::filesystem::create_directory(shared.path + "/directory");
  std::ofstream(shared.path + "/file") << "x";
  REQUIRE(seteuid(0) == 0);
  REQUIRE(setegid(0) == 0);
  CHECK(WhyDirectory(shared.path + "/link/x") ==
        "the symbolic link link belongs to another user (uid 12345)");
  CHECK(WhySubdirectory(shared.path, "directory") ==
        "directory belongs to another user (uid 12345)");
  CHECK(WhyFile(shared.path, "file") == "it belongs to another user (uid 12345)");
  // Below, it is that user's affair.
  CHECK(WhyFile(shared.path + "/directory", "file") == "");
}

}  // namespace
}  // namespace hvd
