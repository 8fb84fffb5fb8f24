#include "cli/front/check_build.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hvd {
namespace {

struct Capability {
  const char* name;
  bool there;
};

std::string Group(const char* title, const std::vector<Capability>& capabilities) {
  std::string text = absl::StrCat("\nAvailable ", title, ":\n");
  for (const Capability& capability : capabilities) {
    absl::StrAppend(&text, "    [", capability.there ? "X" : " ", "] ", capability.name, "\n");
  }
  return text;
}

std::string Found(const LibraryReport& library, const std::string& name) {
  const auto found = library.info.find(name);
  return found == library.info.end() ? "" : found->second;
}

// What is there, with its path, or why it is not.
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

std::string Versions(const LibraryReport& library, absl::string_view python_package) {
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
  if (!python_package.empty()) {
    absl::StrAppend(&text, "    Python package (", python_package, ")\n");
  }
  return text;
}

}  // namespace

std::string FormatCheckBuild(const LibraryReport& library, absl::string_view python_package) {
  const bool loaded = library.problem.empty();
  const bool python = loaded && !python_package.empty();
  return absl::StrCat(
      "hvd v", HVD_VERSION, ":\n",
      Group("Frameworks", {{"C", loaded},
                           {"C++", loaded},
                           {"Python, NumPy", python},
                           {"TensorFlow", false},
                           {"PyTorch", python},
                           {"torch.compile", python && library.torch_operators},
                           {"JAX", python && library.jax_handlers},
                           {"MXNet", false}}),
      Group("Controllers", {{"gRPC", true}}),
      Group("Tensor Operations", {{"shared memory", loaded},
                                  {"TCP", !Found(library, "tcp").empty()},
                                  {"UCX", !Found(library, "ucx").empty()},
                                  {"NCCL", HasWay(library, "nccl")},
                                  {"CUDA, by way of the host", HasWay(library, "host")}}),
      Versions(library, python_package));
}

}  // namespace hvd
