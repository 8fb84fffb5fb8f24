// SPDX-License-Identifier: Apache-2.0
// What the front learns from outside of its own command line, as values and functions, so that
// every decision can be tested without the machine that it runs on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/front/library_report.h"
#include "cli/front/python_report.h"
#include "placement/nvml.h"

namespace hvd::cli {

struct FrontWorld {
  std::vector<std::string> environment;  // NAME=VALUE, as hvdrun inherited it
  std::string directory;                 // hvdrun's working directory, absolute
  std::string program_directory;         // where hvdrun's own file lies, links followed
  std::string host_name;                 // gethostname()
  std::vector<std::string> addresses;    // of the own interfaces, as inet_ntop writes them
  std::vector<int> cores;                // the cores that hvdrun may run on

  // The own name with its domain. May ask the resolver, so it is called only when a host of the job
  // looks like this one; never called when empty.
  std::function<std::string()> full_host_name;
  // The user who runs hvdrun; called only when a local host names a user.
  std::function<std::string()> user_name;
  // This host's GPUs; called for --dry-run only.
  std::function<CardSearch()> find_cards;
  // The whole text of a file of at most kMaxHostfileBytes; the status's message is for the user.
  std::function<absl::StatusOr<std::string>(const std::string& path)> read_file;
  std::function<bool(const std::string& path)> file_exists;
  // Returns what libhvd says about itself; called for --check-build only.
  std::function<LibraryReport()> probe_library;
  // Returns what the person's Python has, by hvd's Python package in this folder; called for
  // --check-build only.
  std::function<PythonReport(const std::string& package)> probe_python;
};

// The real one.
FrontWorld ThisMachine();

}  // namespace hvd::cli
