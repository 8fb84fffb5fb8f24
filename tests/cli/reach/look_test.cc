// SPDX-License-Identifier: Apache-2.0
// The spawner's looks for hosts, with real commands.
#include "cli/reach/look.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/reach/spawner.h"

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;

constexpr int kPatienceMs = 60'000;  // of a test that is to fail
constexpr uint64_t kLongMs = 600'000;

struct Folder {
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hvd-look-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string File(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return (path / name).string();
  }
  std::filesystem::path path;
};

struct Looked {
  LookEnd end = LookEnd::kNotMade;
  int wait_status = -1;
  std::string text, words;
};

// A spawner in a process of its own, and the driver's end of its socket.
class Spawned {
 public:
  Spawned() {
    Descriptor theirs;
    if (!MakeFramePair(&driver_, &theirs)) abort();
    process_ = fork();
    if (process_ == 0) {
      driver_.Reset();
      SpawnerPlan plan;
      plan.patience_s = 30;
      RunSpawner(plan, std::move(theirs));
      _exit(0);
    }
  }
  ~Spawned() {
    driver_.Reset();
    int status = 0;
    waitpid(process_, &status, 0);
  }

  void Ask(const std::vector<std::string>& argv, uint64_t bound_ms = kLongMs) {
    Frame frame;
    frame.kind = FrameKind::kLook;
    frame.number = bound_ms;
    frame.text = absl::StrJoin(argv, absl::string_view("\0", 1));
    REQUIRE(SendFrame(driver_.get(), frame) == FrameResult::kDone);
  }

  Looked Hear() {
    Looked looked;
    for (;;) {
      Frame frame;
      const FrameResult result = ReceiveFrame(driver_.get(), &frame);
      pollfd wait = {driver_.get(), POLLIN, 0};
      if (result == FrameResult::kWouldBlock && poll(&wait, 1, kPatienceMs) == 1) continue;
      if (result != FrameResult::kDone) return looked;
      if (frame.kind == FrameKind::kLookText) looked.text += frame.text;
      if (frame.kind != FrameKind::kLookEnded) continue;
      looked.end = static_cast<LookEnd>(frame.index);
      looked.wait_status = static_cast<int>(frame.number);
      looked.words = frame.text;
      return looked;
    }
  }

  Looked Look(const std::string& script, uint64_t bound_ms = kLongMs) {
    Ask({"/bin/sh", "-c", script}, bound_ms);
    return Hear();
  }

  // Until it has carried out all that it was asked before.
  void AwaitTurn() {
    Frame frame;
    frame.kind = FrameKind::kStart;
    frame.text = "true";
    REQUIRE(SendFrame(driver_.get(), frame) == FrameResult::kDone);
    for (;;) {
      const FrameResult result = ReceiveFrame(driver_.get(), &frame);
      pollfd wait = {driver_.get(), POLLIN, 0};
      if (result == FrameResult::kDone && frame.kind == FrameKind::kExited) return;
      REQUIRE(result != FrameResult::kGone);
      if (result == FrameResult::kWouldBlock) REQUIRE(poll(&wait, 1, kPatienceMs) == 1);
    }
  }

  void KillHard() { kill(process_, SIGKILL); }
  void LeaveAlone() { driver_.Reset(); }

 private:
  Descriptor driver_;
  pid_t process_ = -1;
};

// A process that has it open for writing lives; when none is left, its end is read.
class Lifeline {
 public:
  explicit Lifeline(const Folder& folder) : path_((folder.path / "alive").string()) {
    if (mkfifo(path_.c_str(), 0600) != 0) abort();
    read_end_.Reset(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  }
  const std::string& path() const { return path_; }
  // It ends for the reader although nobody may have opened it yet.
  void Touch() { Descriptor(open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)); }
  // The next byte; '\0': its end.
  char Next() {
    char byte = '\0';
    for (;;) {
      pollfd wait = {read_end_.get(), POLLIN, 0};
      REQUIRE(poll(&wait, 1, kPatienceMs) == 1);
      const ssize_t got = read(read_end_.get(), &byte, 1);
      if (got >= 0) return got == 0 ? '\0' : byte;
    }
  }

 private:
  std::string path_;
  Descriptor read_end_;
};

// A script that hangs, as do a child of its own and one in another session, behind a parent that
// has ended.
std::string Hanging(const Lifeline& line) {
  return absl::StrCat(
      "exec 3>", line.path(),
      "; sleep 1000 & (setsid sh -c 'printf u >&3; sleep 1000; :' &); wait; sleep 9");
}

TEST_CASE("what a script prints arrives, and so does how it ended") {
  Spawned spawner;
  const Looked looked = spawner.Look("echo host1:4; echo a word >&2; cat; exit 3");
  CHECK(looked.end == LookEnd::kEnded);
  CHECK(WEXITSTATUS(looked.wait_status) == 3);
  CHECK(looked.text == "host1:4\n");
  CHECK(looked.words == "a word\n");
  const Looked again = spawner.Look("echo host2");
  CHECK(again.text == "host2\n");
  CHECK(again.wait_status == 0);
}

TEST_CASE("a script's list may be longer than a frame") {
  Spawned spawner;
  const Looked looked = spawner.Look("head -c 1000000 /dev/zero | tr '\\0' x");
  CHECK(looked.end == LookEnd::kEnded);
  CHECK(looked.text == std::string(1000000, 'x'));
}

TEST_CASE("a script that prints without end is ended") {
  Spawned spawner;
  for (const char* script : {"yes", "head -c 10485760 /dev/zero; sleep 1000"}) {
    const Looked looked = spawner.Look(script);
    CHECK(looked.end == LookEnd::kTooMuch);
    CHECK(looked.text.empty());
  }
  CHECK(spawner.Look("echo a").text == "a\n");
}

TEST_CASE("of the words of a script the last ones are kept") {
  Spawned spawner;
  const Looked looked = spawner.Look("yes | head -c 200000 >&2; echo end >&2; exit 1");
  CHECK(looked.words.size() == 4096);
  CHECK_THAT(looked.words, Catch::Matchers::EndsWith("end\n"));
}

TEST_CASE("a script that dies by a signal is told as that") {
  Spawned spawner;
  const Looked looked = spawner.Look("kill -SEGV $$");
  CHECK(looked.end == LookEnd::kEnded);
  REQUIRE(WIFSIGNALED(looked.wait_status));
  CHECK(WTERMSIG(looked.wait_status) == SIGSEGV);
}

TEST_CASE("a script that may not be executed, or is not there, says so") {
  const Folder folder;
  const std::string path = folder.File("hosts.sh", "#!/bin/sh\necho a\n");
  Spawned spawner;
  const Looked looked = spawner.Look(path);
  CHECK(WEXITSTATUS(looked.wait_status) == 126);
  CHECK_FALSE(looked.words.empty());
  CHECK(WEXITSTATUS(spawner.Look(path + "-not").wait_status) == 127);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  CHECK(spawner.Look(path).text == "a\n");
  spawner.Ask({"/nowhere/cat"});
  CHECK_THAT(spawner.Hear().words, Contains("hvdrun-cannot-execute: /nowhere/cat"));
}

TEST_CASE("a script that changes its mind is heard each time") {
  const Folder folder;
  Spawned spawner;
  const std::string path = (folder.path / "hosts").string();
  for (const char* text : {"a:1\n", "a:3\nb\n", ""}) {
    folder.File("hosts", text);
    spawner.Ask({"cat", "--", path});
    CHECK(spawner.Hear().text == text);
  }
  std::filesystem::remove(path);
  spawner.Ask({"cat", "--", path});
  CHECK(spawner.Hear().wait_status != 0);
}

TEST_CASE("a script that hangs is ended when its time is over, with all that it has started") {
  const Folder folder;
  Lifeline line(folder);
  Spawned spawner;
  const Looked looked = spawner.Look(Hanging(line), 1000);
  CHECK(looked.end == LookEnd::kTooLong);
  line.Touch();
  for (char byte = line.Next(); byte != '\0'; byte = line.Next()) CHECK(byte == 'u');
}

TEST_CASE("what a script leaves behind is ended with it") {
  const Folder folder;
  Lifeline line(folder);
  Spawned spawner;
  const Looked looked = spawner.Look(
      absl::StrCat("exec 3>", line.path(), "; sleep 1000 & (setsid sleep 1000 &); echo a"));
  CHECK(looked.end == LookEnd::kEnded);
  CHECK(looked.wait_status == 0);
  CHECK(looked.text == "a\n");
  CHECK(line.Next() == '\0');
}

TEST_CASE("nothing of a script outlives its spawner, or the driver") {
  const Folder folder;
  for (const bool killed : {true, false}) {
    const Folder inner;
    Lifeline line(inner);
    Spawned spawner;
    spawner.Ask({"/bin/sh", "-c", Hanging(line)});
    CHECK(line.Next() == 'u');
    if (killed) spawner.KillHard();
    if (!killed) spawner.LeaveAlone();
    CHECK(line.Next() == '\0');
  }
}

TEST_CASE("there is one look at a time") {
  const Folder folder;
  Lifeline line(folder);
  const std::string go = (folder.path / "go").string();
  REQUIRE(mkfifo(go.c_str(), 0600) == 0);
  Spawned spawner;
  spawner.Ask({"/bin/sh", "-c", absl::StrCat("printf u >", line.path(), "; cat ", go)});
  CHECK(line.Next() == 'u');
  spawner.Ask({"/bin/sh", "-c", "echo second"});
  spawner.AwaitTurn();
  std::ofstream(go) << "first\n";
  CHECK(spawner.Hear().text == "first\n");
  CHECK(spawner.Look("echo third").text == "third\n");
}

}  // namespace
}  // namespace hvd::cli
