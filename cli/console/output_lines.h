// SPDX-License-Identifier: Apache-2.0
// One worker stream's bytes into prefixed lines, and the state of its progress bar. Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace hvd::cli {

inline constexpr size_t kMaxLine = 64 * 1024;

// Lines end with \n or \r\n. A piece that a lone \r ends, or begins, is a state of a progress bar:
// it takes the place of the one before, and whoever shows the lines decides when it is shown. A
// line that follows a \r takes the bar's place, as on a terminal. A line over kMaxLine is split,
// each part but the last marked. Other bytes pass unchanged.
class LineAssembler {
 public:
  // Appends the prefix of the line that begins now: it may hold the time.
  using Prefix = std::function<void(std::string* out)>;

  explicit LineAssembler(Prefix prefix) : prefix_(std::move(prefix)) {}

  // Appends to `out` the lines that `data` completes.
  void Feed(std::string_view data, std::string* out);
  // Appends what there is of a line whose end lets us wait; what follows goes on there.
  void Show(std::string* out);
  bool has_unshown() const { return !in_bar_ && !pending_.empty(); }
  // The line that stands open by Show has been ended, by the caller's newline or by others (a
  // person's Enter): what follows begins another, with a prefix.
  void Cut();
  void EndedByOthers();

  // The bar's newest state, which may be half of one that is being written; empty: there is none.
  const std::string& bar() const;
  // The newest that a \r has ended.
  const std::string& ended_bar() const { return bar_; }
  // Appends a state as a line of its own: one that ends there gets no other.
  void GiveOut(const std::string& state, std::string* out);
  bool is_given_out(const std::string& state) const { return state == given_out_; }

  // The stream has ended: appends the unfinished line or the bar's last state, with a newline.
  void Finish(std::string* out);

 private:
  void Emit(std::string_view line, std::string* out);
  void EndLine(std::string_view line, std::string* out);
  void EndState(std::string_view rest, std::string* out);
  void LeaveBar();

  Prefix prefix_;
  std::string pending_;        // of the line or state that has not ended: what was not given out
  size_t shown_ = 0;           // … and how many bytes were
  bool cut_ = false;           // its newline was given out in its stead: its own would be one more
  bool after_return_ = false;  // the last byte was \r: a \n that follows belongs to it
  bool in_bar_ = false;        // a \r came after the last newline
  std::string bar_;            // its newest state that has ended
  std::string given_out_;      // the state that was given out last
};

}  // namespace hvd::cli
