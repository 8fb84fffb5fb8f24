// SPDX-License-Identifier: Apache-2.0
// The names that this rank has used. Not thread-safe: under the engine's lock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/engine/direct/numbers.h"
#include "runtime/engine/request/local_name.h"

namespace hvd::rt {

class Names {
 public:
  // Stable until the name is forgotten, which happens only to names with nothing pending.
  LocalName* Find(std::string_view name);
  // The given name; the next turn of an unnamed request.
  LocalName* FindFor(const Request& request);
  // Unnamed calls are matched by their order, whatever they are, so that two ranks which call
  // different things get a mismatch and not silence. They take turns in kUnnamed names.
  LocalName* NextUnnamed();
  // The last one that NextUnnamed gave was not submitted: the next call has its turn.
  void GiveTurnBack() { --unnamed_calls_; }
  // After a join: ranks that were away have made fewer calls than others, so all begin anew.
  void RestartUnnamed() { unnamed_calls_ = 0; }
  std::vector<LocalName*> Pending();
  // Without memory.
  template <class Visit>
  void ForEachPending(Visit visit) {
    for (auto& [text, name] : names_) {
      if (name.pending != nullptr) visit(&name);
    }
  }
  uint32_t turns() const { return static_cast<uint32_t>(unnamed_.size()); }  // ever taken

 private:
  static constexpr uint64_t kUnnamed = DirectNumbers::kTurns;
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  LocalName* FindOther(std::string_view name);
  void ForgetIdle();

  std::unordered_map<std::string, LocalName, Hash, std::equal_to<>> names_;
  size_t most_names_ = 32768;        // then those that are idle are forgotten
  LocalName* last_found_ = nullptr;  // loops often ask for one name again
  std::vector<LocalName*> unnamed_;
  uint64_t unnamed_calls_ = 0;
};

}  // namespace hvd::rt
