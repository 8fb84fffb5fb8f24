// SPDX-License-Identifier: Apache-2.0
#include "cli/front/check_build.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hvd::cli {
namespace {

// In the order of the lines; the Python package has their versions and reasons.
constexpr std::array kFrameworks = {"NumPy",   "TensorFlow",    "Keras", "tf_keras",
                                    "PyTorch", "torch.compile", "JAX",   "MXNet"};

struct Capability {
  std::string name;
  bool there;
  std::string why_not;
};

std::string Group(const char* title, const std::vector<Capability>& capabilities) {
  std::string text = absl::StrCat("\nAvailable ", title, ":\n");
  for (const Capability& capability : capabilities) {
    absl::StrAppend(&text, "    [", capability.there ? "X" : " ", "] ", capability.name);
    if (!capability.there && !capability.why_not.empty()) {
      absl::StrAppend(&text, ": ", capability.why_not);
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

Capability Judged(const char* title, const PythonFinding& found, bool loaded) {
  return {found.version.empty() ? title : absl::StrCat(title, " ", found.version),
          loaded && found.problem.empty(),
          found.problem.empty() && !loaded ? "libhvd is missing or broken" : found.problem};
}

std::vector<Capability> Frameworks(bool loaded, const PythonReport& python) {
  std::vector<Capability> lines = {
      {"C", loaded, ""}, {"C++", loaded, ""}, Judged("Python", python.python, loaded)};
  for (const char* title : kFrameworks) {
    const auto found = python.frameworks.find(title);
    if (found == python.frameworks.end()) {
      lines.push_back({title, false, ""});  // Python's line says why
    } else {
      lines.push_back(Judged(title, found->second, loaded));
    }
  }
  return lines;
}

std::string Found(const LibraryReport& library, const std::string& name) {
  const auto found = library.info.find(name);
  return found == library.info.end() ? "" : found->second;
}

// Says what is there, with its path, or why it is not.
std::string GpuLines(const LibraryReport& library) {
  std::string text;
  for (const auto& [name, title] : {std::pair("cuda", "CUDA driver"), std::pair("nccl", "NCCL")}) {
    const std::string value = Found(library, name);
    const std::string problem = Found(library, absl::StrCat(name, "_problem"));
    if (!value.empty()) absl::StrAppend(&text, "    ", title, " ", value, "\n");
    if (value.empty() && !problem.empty()) {
      absl::StrAppend(&text, "    no ", title, ": ", problem, "\n");
    }
  }
  const std::string gpus = Found(library, "gpus");
  if (gpus == "0") {
    if (!Found(library, "cuda").empty()) absl::StrAppend(&text, "    no GPU on this machine\n");
  } else if (!gpus.empty()) {
    absl::StrAppend(&text, "    GPUs ", gpus, "\n");
  }
  return text;
}

bool HasWay(const LibraryReport& library, absl::string_view way) {
  const std::vector<std::string> ways = absl::StrSplit(Found(library, "gpu_operations"), ' ');
  return std::find(ways.begin(), ways.end(), way) != ways.end();
}

// The interpreter, and the package that it imports.
std::string PythonLines(const PythonReport& python, absl::string_view package) {
  std::string text;
  if (!python.python.version.empty()) {
    absl::StrAppend(&text, "    Python ", python.python.version, " (", python.path, ")\n");
  }
  if (!package.empty()) absl::StrAppend(&text, "    Python package (", package, ")\n");
  if (!python.package.empty() && python.package != package) {
    absl::StrAppend(&text, "    another Python package (", python.package,
                    "): that is the one which this Python imports\n");
  }
  return text;
}

std::string Versions(const LibraryReport& library) {
  std::string text = absl::StrCat("\nVersions:\n    hvdrun ", HVD_VERSION, "\n");
  const std::string version = Found(library, "version");
  if (!library.problem.empty()) {
    absl::StrAppend(&text, "    libhvd: ", library.problem, "\n");
  } else {
    absl::StrAppend(&text, "    libhvd ", version, " (", library.path, ")",
                    version == HVD_VERSION ? "" : ": another version than hvdrun's", "\n");
  }
  absl::StrAppend(&text, "    gRPC ", HVD_GRPC_VERSION, "\n");
  for (const auto& [name, title] : {std::pair("ucx", "UCX"), std::pair("kernels", "kernels")}) {
    const std::string value = Found(library, name);
    if (!value.empty()) absl::StrAppend(&text, "    ", title, " ", value, "\n");
  }
  absl::StrAppend(&text, GpuLines(library));
  return text;
}

}  // namespace

std::string FormatCheckBuild(const LibraryReport& library, const PythonReport& python,
                             absl::string_view python_package) {
  const bool loaded = library.problem.empty();
  return absl::StrCat(
      "hvd v", HVD_VERSION, ":\n", Group("Frameworks", Frameworks(loaded, python)),
      Group("Controllers", {{"gRPC", true, ""}}),
      Group("Tensor Operations", {{"shared memory", loaded, ""},
                                  {"TCP", !Found(library, "tcp").empty(), ""},
                                  {"UCX", !Found(library, "ucx").empty(), ""},
                                  {"NCCL", HasWay(library, "nccl"), ""},
                                  {"CUDA, by way of the host", HasWay(library, "host"), ""}}),
      Versions(library), PythonLines(python, python_package));
}

}  // namespace hvd::cli
