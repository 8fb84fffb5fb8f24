#include "cli/front/check_build.h"

#include <vector>

#include "absl/strings/str_cat.h"

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
  for (const auto& [name, title] : {std::pair("ucx", "UCX"), std::pair("nccl", "NCCL"),
                                    std::pair("cuda", "CUDA"), std::pair("kernels", "kernels")}) {
    const std::string value = Found(library, name);
    if (!value.empty()) absl::StrAppend(&text, "    ", title, " ", value, "\n");
  }
  if (!python_package.empty()) {
    absl::StrAppend(&text, "    Python package (", python_package, ")\n");
  }
  return text;
}

}  // namespace

std::string FormatCheckBuild(const LibraryReport& library, absl::string_view python_package) {
  const bool loaded = library.problem.empty();
  const bool python = loaded && !python_package.empty();
  return absl::StrCat("hvd v", HVD_VERSION, ":\n",
                      Group("Frameworks", {{"C", loaded},
                                           {"C++", loaded},
                                           {"Python, NumPy", python},
                                           {"TensorFlow", false},
                                           {"PyTorch", python},
                                           {"torch.compile", python && library.torch_operators},
                                           {"MXNet", false}}),
                      Group("Controllers", {{"gRPC", true}}),
                      Group("Tensor Operations", {{"shared memory", loaded},
                                                  {"TCP", !Found(library, "tcp").empty()},
                                                  {"UCX", !Found(library, "ucx").empty()},
                                                  {"NCCL", !Found(library, "nccl").empty()},
                                                  {"CUDA", !Found(library, "cuda").empty()}}),
                      Versions(library, python_package));
}

}  // namespace hvd
