// SPDX-License-Identifier: Apache-2.0
#include "daemon/shim/spawn_order.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <fstream>

#include "daemon/shim/spawn.h"

namespace hvd::daemon {
namespace {

SpawnOrder Sample() {
  SpawnOrder order;
  order.argv = {"train", "", "a b"};
  order.environment = {"A=1", "PATH=/bin"};
  order.directory = "/work";
  order.umask = 077;
  order.door_fd = 197;
  order.limits = {{7, 1024}, {8, UINT64_MAX}};
  order.cores = {0, 3};
  return order;
}

TEST_CASE("an order survives the way to the shim") {
  const Descriptor fd = OrderToFd(Sample());
  SpawnOrder back;
  REQUIRE(OrderFromFd(fd.get(), &back));
  CHECK(back.argv == Sample().argv);
  CHECK(back.environment == Sample().environment);
  CHECK(back.directory == "/work");
  CHECK(back.umask == 077);
  CHECK(back.door_fd == 197);
  REQUIRE(back.limits.size() == 2);
  CHECK(back.limits[1].soft == UINT64_MAX);
  CHECK(back.cores == std::vector<int>{0, 3});
}

TEST_CASE("an order cut short or with an absurd count is refused") {
  const std::string packed = PackOrder(Sample());
  SpawnOrder order;
  for (size_t size = 0; size < packed.size(); ++size) {
    CHECK(!UnpackOrder(packed.substr(0, size), &order));
  }
  CHECK(!UnpackOrder(packed + "x", &order));
  CHECK(!UnpackOrder(std::string(16, '\xff'), &order));
}

TEST_CASE("failures to start in words and codes") {
  using Step = ExecFailure::Step;
  const SpawnOrder order = Sample();
  CHECK(DescribeExecFailure({Step::kCommand, ENOENT}, order) ==
        "command 'train' not found on PATH (/bin)");
  CHECK(ExecFailureCode({Step::kCommand, ENOENT}) == 127);
  CHECK(ExecFailureCode({Step::kCommand, EACCES}) == 126);
  CHECK(ExecFailureCode({Step::kDirectory, ENOENT}) == 125);
  CHECK(DescribeExecFailure({Step::kDirectory, ENOENT}, order).find("'/work'") !=
        std::string::npos);
  CHECK(DescribeExecFailure({Step::kProcess, EAGAIN}, order).find("ulimit -u") !=
        std::string::npos);
  CHECK(ExecFailureCode({Step::kProcess, EAGAIN}) == 125);
}

// A new directory with nothing but a file of this text and mode, for one test.
struct OneFile {
  OneFile(const char* name, const std::string& text, mode_t mode) {
    REQUIRE(mkdtemp(directory) != nullptr);
    path = directory + std::string("/") + name;
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
  }
  ~OneFile() {
    unlink(path.c_str());
    rmdir(directory);
  }
  char directory[32] = "/tmp/hvd-test.XXXXXX";
  std::string path;
};

TEST_CASE("a command that cannot run says what to do") {
  using Step = ExecFailure::Step;
  SpawnOrder order = Sample();
  const auto told = [&](const char* command, int error, const OneFile& file) {
    order.argv[0] = command;
    order.directory = file.directory;
    return DescribeExecFailure({Step::kCommand, error}, order);
  };
  const OneFile train("train", "#!/no/such/python -u\n", 0755);
  CHECK(told("train", ENOENT, train) ==
        "command 'train' not found on PATH (/bin); there is ./train here: write ./train");
  CHECK(told("other", ENOENT, train) == "command 'other' not found on PATH (/bin)");
  const std::string no_python =
      ": its first line asks for '/no/such/python', which is not there: No such file or directory";
  CHECK(told("./train", ENOENT, train) == "cannot run './train'" + no_python);
  CHECK(told(train.path.c_str(), ENOENT, train) == "cannot run '" + train.path + "'" + no_python);
  CHECK(told("./other", ENOENT, train) ==
        std::string("cannot run './other': No such file or directory in '") + train.directory +
            "'; it must be there on every host");
  CHECK(told("/train\r", ENOENT, train) ==
        "cannot run '/train\\r': No such file or directory; it must be there on every host");
  CHECK(told("true\x1b\x7f", ENOENT, train) == "command 'true\\x1b\\x7f' not found on PATH (/bin)");
  CHECK(told("/no/such", ENOENT, train) ==
        "cannot run '/no/such': No such file or directory; it must be there on every host");
  CHECK(told("./train", EACCES, train) == "cannot run './train': Permission denied");

  const OneFile dos("train", "#! /bin/sh\r\n", 0755);
  CHECK(told("./train", ENOENT, dos) ==
        "cannot run './train': its first line ends in a carriage return, as in a DOS file; next: "
        "sed -i 's/\\r$//' ./train");
  const OneFile plain("train", "#!/bin/sh\n", 0644);
  CHECK(told("./train", EACCES, plain) ==
        "cannot run './train': Permission denied; next: chmod +x ./train");
  CHECK(told("train", EACCES, plain) == "cannot run 'train': Permission denied");
  for (const char* const directory : {"./", ".", "..", plain.directory}) {
    CHECK(told(directory, EACCES, plain) ==
          std::string("cannot run '") + directory + "': it is a directory; name a program in it");
  }
  CHECK(
      told("./train", ENOENT,
           OneFile("train",
                   "\x7f"
                   "ELF",
                   0755)) ==
      "cannot run './train': it is there, but not the loader that it asks for; next: file ./train");
}

TEST_CASE("a process that cannot be made is no matter of descriptors") {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit alone = {1, 1};
    setrlimit(RLIMIT_NPROC, &alone);
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) _exit(2);
    const Spawned spawned = Spawn(Sample(), {});
    _exit(spawned.pid < 0 && errno == EAGAIN && spawned.failed == ExecFailure::Step::kProcess ? 0
                                                                                              : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace hvd::daemon
