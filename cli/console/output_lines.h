// SPDX-License-Identifier: Apache-2.0
// One worker stream's bytes into prefixed lines. Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace hvd {

inline constexpr size_t kMaxLine = 64 * 1024;

// Lines end with \n or \r (progress bars); "\r\n" is one end. A \r at the beginning of a line,
// where a bar begins, is left out. A line over kMaxLine is split, each part but the last marked. A
// \r before anything else of a line is left out. Other bytes pass unchanged otherwise.
class LineAssembler {
 public:
  // Appends the prefix of the line that begins now: it may hold the time.
  using Prefix = std::function<void(std::string* out)>;

  explicit LineAssembler(Prefix prefix) : prefix_(std::move(prefix)) {}

  // Appends to `out` the lines that `data` completes.
  void Feed(std::string_view data, std::string* out);
  // Appends what there is of a line whose end lets us wait; what follows goes on there.
  void Show(std::string* out);
  bool has_unshown() const { return !pending_.empty(); }
  // The line that stands open by Show has been ended, by the caller's newline or by others (a
  // person's Enter): what follows begins another, with a prefix.
  void Cut();
  void EndedByOthers();
  // The last line, which ended with \r, has got a newline from the caller.
  void ReturnEnded() { return_ended_ = after_return_; }
  // The stream has ended: appends the unfinished line, with a newline; a progress bar gets one,
  // too.
  void Finish(std::string* out);

 private:
  void Emit(std::string_view line, std::string* out);

  Prefix prefix_;
  std::string pending_;        // of the line that has not ended: what was not given out
  size_t shown_ = 0;           // … and how many bytes were
  bool cut_ = false;           // its newline was given out in its stead: its own would be one more
  bool after_return_ = false;  // the last byte given out was \r: a \n that follows belongs to it
  bool return_ended_ = false;  // … and has been given out in its stead
};

}  // namespace hvd
