// SPDX-License-Identifier: Apache-2.0
#include "cli/reach/ssh_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "cli/front/words/shell_words.h"

namespace hvd::cli {
namespace {

RunOptions OneHost(HostSlots host, bool local) {
  RunOptions options;
  options.topology = Topology({{host.name, 1}});
  options.host_of = {std::move(host)};
  options.is_local = {local};
  return options;
}

HostSlots Host(std::string name, std::string user = "", int port = 0) {
  HostSlots host;
  host.name = std::move(name);
  host.user = std::move(user);
  host.port = port;
  return host;
}

bool HasPair(const std::vector<std::string>& argv, const std::string& a, const std::string& b) {
  for (size_t i = 0; i + 1 < argv.size(); ++i) {
    if (argv[i] == a && argv[i + 1] == b) return true;
  }
  return false;
}

const DaemonStart kStart = {"abcd", "/opt/hvd/bin/hvdd", true};

TEST_CASE("ssh gets the options that keep it out of our way, over the user's configuration") {
  RunOptions options = OneHost(Host("node1", "ann", 2200), false);
  options.ssh_port = 22;
  options.ssh_identity = "/k";
  options.start_timeout_s = 10;
  const auto argv = *DaemonArgv(options, kStart, TargetOf(options, 0));
  CHECK(argv[0] == "ssh");
  for (const char* option :
       {"BatchMode=yes", "ControlMaster=no", "ControlPath=none", "RemoteCommand=none",
        "ClearAllForwardings=yes", "PermitLocalCommand=no", "ConnectTimeout=9"}) {
    CHECK(HasPair(argv, "-o", option));
  }
  CHECK(HasPair(argv, "-p", "2200"));
  CHECK(HasPair(argv, "-i", "/k"));
  CHECK(HasPair(argv, "--", "ann@node1"));
  CHECK(argv.back() == RemoteCommand(options, kStart));
  for (const std::string& word : argv) CHECK(word.find("StrictHostKeyChecking") == word.npos);
}

TEST_CASE("the user's own remote shell gets its words, the host and the command") {
  RunOptions options = OneHost(Host("n1", "ann"), false);
  options.rsh_agent = "srun --jobid '4 2' -w";
  const auto argv = *DaemonArgv(options, kStart, TargetOf(options, 0));
  REQUIRE(argv.size() == 6);
  CHECK(argv[2] == "4 2");
  CHECK(argv[4] == "ann@n1");
  options.rsh_agent = "bad 'quote";
  CHECK(DaemonArgv(options, kStart, TargetOf(options, 0)).status().message() ==
        "--rsh-agent: this quote is never closed\n  bad 'quote\n      ^");
}

TEST_CASE("a local host starts hvdd itself, with the containment when one is asked for") {
  RunOptions options = OneHost(Host("localhost"), true);
  CHECK(*DaemonArgv(options, kStart, TargetOf(options, 0)) ==
        std::vector<std::string>{"/opt/hvd/bin/hvdd", "--marker", "abcd"});
  options.containment = 3;
  CHECK(HasPair(*DaemonArgv(options, kStart, TargetOf(options, 0)), "--containment", "subreaper"));
}

// A directory with an hvdd that says who it is.
struct Place {
  explicit Place(const std::string& name) {
    char path[] = "/tmp/hvd-ssh-command.XXXXXX";
    root = mkdtemp(path);
    std::filesystem::create_directories(root + "/" + name + "/bin");
    hvdd = root + "/" + name + "/bin/hvdd";
  }
  ~Place() { std::filesystem::remove_all(root); }
  void Install() const {
    std::ofstream(hvdd) << "#!/bin/sh\necho \"$0 $*\"\n";
    chmod(hvdd.c_str(), 0755);
  }
  std::string root, hvdd;
};

std::string Run(const std::string& shell, const std::string& command, int* code) {
  const std::string line =
      "PATH=/usr/bin:/bin " + shell + " -c " + QuoteForAnyShell(command) + " 2>&1";
  FILE* pipe = popen(line.c_str(), "r");
  char text[4096];
  const size_t size = fread(text, 1, sizeof text, pipe);
  *code = WEXITSTATUS(pclose(pipe));
  const std::string said(text, size);
  const std::string logged_in = "hvdrun-is-logged-in\n";
  CHECK(said.rfind(logged_in, 0) == 0);
  return said.substr(std::min(said.size(), logged_in.size()));
}

TEST_CASE("hvdd is found at our own place, then under --prefix, by every login shell here") {
  const Place own("it's our own"), prefix("pre fix");
  RunOptions options = OneHost(Host("n"), false);
  options.prefix = prefix.root + "/pre fix";
  const DaemonStart start = {"abcd", own.hvdd, true};
  for (const std::string shell : {"sh", "bash", "dash", "zsh", "tcsh", "csh", "fish"}) {
    if (system(("command -v " + shell + " >/dev/null").c_str()) != 0) continue;
    INFO(shell);
    std::filesystem::remove(own.hvdd);
    std::filesystem::remove(prefix.hvdd);
    int code = 0;
    const std::string missing = Run(shell, RemoteCommand(options, start), &code);
    CHECK(code == 127);
    CHECK(missing.rfind("hvdd-not-found: PATH=/usr/bin:/bin", 0) == 0);
    prefix.Install();
    CHECK(Run(shell, RemoteCommand(options, start), &code) == prefix.hvdd + " --marker abcd\n");
    own.Install();
    CHECK(Run(shell, RemoteCommand(options, start), &code) == own.hvdd + " --marker abcd\n");
  }
  CHECK(WhereHvddIsSought(options, start).find(prefix.hvdd) != std::string::npos);
}

}  // namespace
}  // namespace hvd::cli
