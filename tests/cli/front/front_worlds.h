// SPDX-License-Identifier: Apache-2.0
// Made-up surroundings of an hvdrun.
#pragma once

#include <map>
#include <string>

#include "cli/front/front.h"

namespace hvd::cli {

// A host "box" of four cores with the given files.
inline FrontWorld BoxWorld(std::map<std::string, std::string> files = {}) {
  FrontWorld world;
  world.environment = {"PATH=/bin", "HOME=/home/me", "FOO=1"};
  world.directory = "/home/me/job";
  world.host_name = "box";
  world.addresses = {"127.0.0.1", "10.0.0.5", "fe80::1:2", "::1"};
  world.cores = {0, 1, 2, 3};
  world.full_host_name = [] { return "box.example.org"; };
  world.user_name = [] { return "me"; };
  world.find_cards = [] {
    return CardSearch{{{"00000000:01:00.0", {"GPU-aaaaaaaa-1111", "NVIDIA A"}}}, ""};
  };
  world.read_file = [files](const std::string& path) -> absl::StatusOr<std::string> {
    const auto found = files.find(path);
    if (found == files.end()) return absl::InvalidArgumentError(path + " is not there");
    return found->second;
  };
  world.file_exists = [files](const std::string& path) { return files.count(path) > 0; };
  world.probe_library = [] { return LibraryReport{"/lib/libhvd.so", "", {{"version", "9.8.7"}}}; };
  world.probe_python = [](const std::string& package) {
    return PythonReport{{"3.11.2", ""}, "/bin/python3", package, {{"PyTorch", {"2.13.0", ""}}}};
  };
  return world;
}

inline FrontOutcome Decide(std::vector<std::string> args, const FrontWorld& world = BoxWorld()) {
  std::vector<const char*> argv = {"hvdrun"};
  for (const std::string& arg : args) argv.push_back(arg.c_str());
  return DecideRun(static_cast<int>(argv.size()), argv.data(), world);
}

}  // namespace hvd::cli
