// SPDX-License-Identifier: Apache-2.0
// A library that is looked for at run time: hvd runs without it, and says so. Any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hvd::rt {

class SharedLibrary {
 public:
  SharedLibrary() = default;
  ~SharedLibrary();
  SharedLibrary(SharedLibrary&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), path_(std::move(other.path_)) {}
  SharedLibrary& operator=(SharedLibrary&& other) noexcept;

  // `name` is a path, or what the system's search finds. NotFound: the system's words for why not.
  static absl::StatusOr<SharedLibrary> Open(const std::string& name);
  // The one that this process has loaded already; NotFound: it has none.
  static absl::StatusOr<SharedLibrary> OpenLoaded(const std::string& name);

  // The loaded one, else the first of `beside` that can be opened, else what the system finds.
  // NotFound: why not, of each.
  static absl::StatusOr<SharedLibrary> OpenFirst(const std::string& system,
                                                 const std::vector<std::string>& beside);

  // Null: it has none of that name.
  void* Find(const char* symbol) const;
  const std::string& path() const { return path_; }

 private:
  SharedLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  static absl::StatusOr<SharedLibrary> OpenAs(const std::string& name, int flags);

  void* handle_ = nullptr;
  std::string path_;  // where it lies
};

// Fills a table of functions. The names of those that the library lacks gather.
class SymbolLoader {
 public:
  explicit SymbolLoader(const SharedLibrary& library) : library_(library) {}

  template <class Function>
  void Must(const char* name, Function** function) {
    May(name, function);
    if (*function == nullptr) missing_.emplace_back(name);
  }
  // Left null where the library is too old for it.
  template <class Function>
  void May(const char* name, Function** function) {
    *function = reinterpret_cast<Function*>(library_.Find(name));
  }

  // Unimplemented: what is missing, and where.
  absl::Status status() const;

 private:
  const SharedLibrary& library_;
  std::vector<std::string> missing_;
};

}  // namespace hvd::rt
