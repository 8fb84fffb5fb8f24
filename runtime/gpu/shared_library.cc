// SPDX-License-Identifier: Apache-2.0
#include "runtime/gpu/shared_library.h"

#include <dlfcn.h>
#include <link.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hvd::rt {

SharedLibrary::~SharedLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

SharedLibrary& SharedLibrary::operator=(SharedLibrary&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(path_, other.path_);
  return *this;
}

absl::StatusOr<SharedLibrary> SharedLibrary::OpenAs(const std::string& name, int flags) {
  void* handle = dlopen(name.c_str(), flags);
  if (handle == nullptr) {
    const char* why = dlerror();
    return absl::NotFoundError(why != nullptr ? why : absl::StrCat(name, " is not loaded"));
  }
  link_map* map = nullptr;
  const bool known = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] != '\0';
  return SharedLibrary(handle, known ? map->l_name : name);
}

absl::StatusOr<SharedLibrary> SharedLibrary::Open(const std::string& name) {
  return OpenAs(name, RTLD_NOW | RTLD_LOCAL);
}

absl::StatusOr<SharedLibrary> SharedLibrary::OpenLoaded(const std::string& name) {
  return OpenAs(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
}

absl::StatusOr<SharedLibrary> SharedLibrary::OpenFirst(const std::string& system,
                                                       const std::vector<std::string>& beside) {
  auto loaded = OpenLoaded(system);
  if (loaded.ok()) return loaded;
  std::string why;
  for (const std::string& path : beside) {
    auto opened = Open(path);
    if (opened.ok()) return opened;
    absl::StrAppend(&why, opened.status().message(), "; ");
  }
  auto found = Open(system);
  if (found.ok()) return found;
  return absl::NotFoundError(absl::StrCat(why, found.status().message()));
}

void* SharedLibrary::Find(const char* symbol) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, symbol);
}

absl::Status SymbolLoader::status() const {
  if (missing_.empty()) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat(library_.path(), " is too old: it has no ", absl::StrJoin(missing_, ", ")));
}

}  // namespace hvd::rt
