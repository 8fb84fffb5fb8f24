// The names that this rank has used: what is pending under each, and what makes marking it again
// cheap. Not thread-safe: under the engine's mutex.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/engine/direct/direct.h"
#include "runtime/engine/request/request.h"

namespace hvd {

struct LocalName {
  const std::string* name = nullptr;
  Request* pending = nullptr;
  uint32_t board_number = 0;  // of the pending request, once it is on the board
  uint32_t turn = 0;          // of those that unnamed calls take, from one on; 0: it is none
  bool direct = false;        // the pending request is marked directly, and not on the board
  bool prepared = false;      // whether `ticket.number` is known, and room is kept for it
  bool wants_number = false;  // the pending request could go directly, had it a number
  uint64_t last_use = 0;      // its sequence
  uint64_t distance = 0;      // from the use before: so many of this rank's submissions
  DirectTicket ticket;        // of the latest request
  uint64_t word = 0;          // its mark
  bool in_place = false;      // the mark says where the tensors lie
  bool staged = false;        // in this rank's stage
  int64_t begin_ns = 0;       // when it began to, while the timeline is on
  bool worked = false;        // this rank has done its part of them
  // "allreduce 'grad.3'", for the host's page; of the latest kind.
  RequestKind described = RequestKind::kLeave;
  std::array<char, sizeof(RankActivity::last)> description{};
};

// What ranks call it among themselves: as it was given, else by its turn, once it is submitted. Any
// thread.
const std::string& AgreedName(const Request& request);

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
  uint32_t turns() const { return static_cast<uint32_t>(unnamed_.size()); }  // ever taken

 private:
  static constexpr uint64_t kUnnamed = Direct::kTurns;
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

}  // namespace hvd
