// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/worker_environment.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace hvd::daemon {
namespace {

// "": not set.
std::string Get(const std::vector<std::string>& environment, const std::string& name) {
  for (const std::string& entry : environment) {
    if (entry.rfind(name + "=", 0) == 0) return entry.substr(name.size() + 1);
  }
  return "";
}

WorkerEnvironment Input() {
  WorkerEnvironment in;
  in.launcher = {"PATH=/usr/bin",  "HOME=/home/launcher", "LANG=de_DE",    "HVD_RANK=99",
                 "HOROVOD_SIZE=7", "HVD_LINK=stolen",     "HVD_LOG=debug", "SSH_AUTH_SOCK=/x"};
  in.host = {"HOME=/home/here", "TMPDIR=/scratch", "XDG_RUNTIME_DIR=/run/1", "EDITOR=vi"};
  in.host_name = "host1";
  in.link = "197:5:token:/path";
  in.job = "feed";
  in.first_host = "host0";
  in.hosts = 3;
  in.place.host = 2;
  in.place.rank = 5;
  in.place.local_rank = 1;
  in.place.local_size = 2;
  in.place.cross_rank = 1;
  in.place.cross_size = 3;
  in.size = 6;
  return in;
}

TEST_CASE("the launcher's environment, but what belongs to the host from the host") {
  const auto environment = BuildEnvironment(Input());
  CHECK(Get(environment, "PATH") == "/usr/bin");
  CHECK(Get(environment, "LANG") == "de_DE");
  CHECK(Get(environment, "HVD_LOG") == "debug");
  CHECK(Get(environment, "HOME") == "/home/here");
  CHECK(Get(environment, "TMPDIR") == "/scratch");
  CHECK(Get(environment, "XDG_RUNTIME_DIR") == "/run/1");
  CHECK(Get(environment, "SSH_AUTH_SOCK").empty());
  CHECK(Get(environment, "EDITOR").empty());
}

TEST_CASE("identity under all the names that programs look for, never an outer job's") {
  const auto environment = BuildEnvironment(Input());
  for (const std::string prefix : {"HVD_", "HOROVOD_"}) {
    CHECK(Get(environment, prefix + "RANK") == "5");
    CHECK(Get(environment, prefix + "SIZE") == "6");
    CHECK(Get(environment, prefix + "LOCAL_RANK") == "1");
    CHECK(Get(environment, prefix + "LOCAL_SIZE") == "2");
    CHECK(Get(environment, prefix + "CROSS_RANK") == "1");
    CHECK(Get(environment, prefix + "CROSS_SIZE") == "3");
    CHECK(Get(environment, prefix + "HOSTNAME") == "host1");
  }
  CHECK(Get(environment, "RANK") == "5");
  CHECK(Get(environment, "WORLD_SIZE") == "6");
  CHECK(Get(environment, "LOCAL_RANK") == "1");
  CHECK(Get(environment, "LOCAL_WORLD_SIZE") == "2");
  CHECK(Get(environment, "HVD_LINK") == "197:5:token:/path");
  CHECK(Get(environment, "HVD_JOB_MARK") == "feed");
  CHECK(Get(environment, "PYTHONUNBUFFERED") == "1");
}

TEST_CASE("what torchrun tells a worker, and no port") {
  const auto environment = BuildEnvironment(Input());
  CHECK(Get(environment, "GROUP_RANK") == "2");
  CHECK(Get(environment, "GROUP_WORLD_SIZE") == "3");
  CHECK(Get(environment, "ROLE_RANK") == "5");
  CHECK(Get(environment, "ROLE_WORLD_SIZE") == "6");
  CHECK(Get(environment, "ROLE_NAME") == "default");
  CHECK(Get(environment, "MASTER_ADDR") == "host0");
  CHECK(Get(environment, "MASTER_PORT").empty());
  CHECK(Get(environment, "TORCHELASTIC_RUN_ID") == "feed");
  CHECK(Get(environment, "TORCHELASTIC_RESTART_COUNT") == "0");
  CHECK(Get(environment, "TORCHELASTIC_MAX_RESTARTS") == "0");
}

TEST_CASE("a master and a role that the user has chosen stay, another launcher's ranks do not") {
  WorkerEnvironment in = Input();
  in.launcher.insert(in.launcher.end(), {"MASTER_ADDR=10.0.0.1", "MASTER_PORT=4000",
                                         "ROLE_NAME=reader", "GROUP_RANK=77", "ROLE_RANK=77"});
  const auto environment = BuildEnvironment(in);
  CHECK(Get(environment, "MASTER_ADDR") == "10.0.0.1");
  CHECK(Get(environment, "MASTER_PORT") == "4000");
  CHECK(Get(environment, "ROLE_NAME") == "reader");
  CHECK(Get(environment, "GROUP_RANK") == "2");
  CHECK(Get(environment, "ROLE_RANK") == "5");
}

TEST_CASE("what the user passes on by name beats the host's own") {
  WorkerEnvironment in = Input();
  in.own = {"HOME", "SSH_AUTH_SOCK", "HVD_RANK"};
  in.launcher.push_back("PYTHONUNBUFFERED=");
  const auto environment = BuildEnvironment(in);
  CHECK(Get(environment, "HOME") == "/home/launcher");
  CHECK(Get(environment, "SSH_AUTH_SOCK") == "/x");
  CHECK(Get(environment, "HVD_RANK") == "5");
  CHECK(Get(environment, "PYTHONUNBUFFERED").empty());
}

TEST_CASE("GPUs by UUID, unless the user has chosen") {
  WorkerEnvironment in = Input();
  CHECK(Get(BuildEnvironment(in), "CUDA_VISIBLE_DEVICES").empty());
  in.gpu_uuids = {"GPU-a", "GPU-b"};
  CHECK(Get(BuildEnvironment(in), "CUDA_VISIBLE_DEVICES") == "GPU-a,GPU-b");
  CHECK(Get(BuildEnvironment(in), "CUDA_DEVICE_ORDER") == "PCI_BUS_ID");
  in.own = {"CUDA_VISIBLE_DEVICES"};
  in.launcher.push_back("CUDA_VISIBLE_DEVICES=1");
  CHECK(Get(BuildEnvironment(in), "CUDA_VISIBLE_DEVICES") == "1");
}

TEST_CASE("no name appears twice and nonsense is left out") {
  WorkerEnvironment in = Input();
  in.launcher.insert(in.launcher.end(), {"LANG=fr_FR", "=odd", "nothing"});
  auto environment = BuildEnvironment(in);
  CHECK(Get(environment, "LANG") == "fr_FR");
  for (std::string& entry : environment) entry.resize(entry.find('='));
  std::sort(environment.begin(), environment.end());
  CHECK(std::adjacent_find(environment.begin(), environment.end()) == environment.end());
  CHECK(std::find(environment.begin(), environment.end(), "") == environment.end());
}

}  // namespace
}  // namespace hvd::daemon
