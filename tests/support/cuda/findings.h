// SPDX-License-Identifier: Apache-2.0
// What the stand-in for the driver has found: a process has one, and tests look at theirs alone.
#pragma once

#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace hvd::rt {

// The findings of the stand-in at that path, since this was made. Any thread.
class Findings {
 public:
  explicit Findings(const char* library) : library_(dlopen(library, RTLD_NOW)) {
    REQUIRE(library_ != nullptr);
    before_ = Count();
  }
  ~Findings() { dlclose(library_); }
  Findings(const Findings&) = delete;
  Findings& operator=(const Findings&) = delete;

  std::vector<std::string> Since() const {
    const auto tell = Symbol<void(uint64_t, char*, size_t)>("hvd_stand_in_finding");
    std::vector<std::string> found;
    for (uint64_t i = before_; i < Count(); ++i) {
      char text[300];
      tell(i, text, sizeof(text));
      found.emplace_back(text);
    }
    return found;
  }

 private:
  template <class Function>
  Function* Symbol(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  uint64_t Count() const { return Symbol<uint64_t()>("hvd_stand_in_findings")(); }

  void* const library_;
  uint64_t before_ = 0;
};

}  // namespace hvd::rt
