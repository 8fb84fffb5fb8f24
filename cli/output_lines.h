// One worker stream's bytes into prefixed lines. Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace hvd {

inline constexpr size_t kMaxLine = 64 * 1024;

// Lines end with \n or \r (progress bars); "\r\n" is one end. A line over kMaxLine is split, each
// part but the last marked. Bytes pass unchanged otherwise.
class LineAssembler {
 public:
  // Appends the prefix of the line that begins now: it may hold the time.
  using Prefix = std::function<void(std::string* out)>;

  explicit LineAssembler(Prefix prefix) : prefix_(std::move(prefix)) {}

  // Appends to `out` the lines that `data` completes.
  void Feed(std::string_view data, std::string* out);
  // The stream has ended: appends the unfinished line, with a newline.
  void Finish(std::string* out);

 private:
  void Emit(std::string_view line, std::string* out);

  Prefix prefix_;
  std::string pending_;        // begins a line
  bool after_return_ = false;  // the last byte given out was \r: a \n that follows belongs to it
};

}  // namespace hvd
