// SPDX-License-Identifier: Apache-2.0
// Whether anybody is left to tell: how hvdd and its driver part, and when hvdd may go. Pure.
#pragma once

#include <optional>
#include <utility>

namespace hvd::daemon {

class Parting {
 public:
  enum class Go {
    kNotYet,
    kSoon,  // the driver may still hear of it
    kNow,
  };

  // Each returns whether it is news.
  bool LoseDriver() { return !std::exchange(driver_gone_, true); }  // its connection has ended
  // The lease has ended; the connection may live. No news of a driver that is gone.
  bool Silence() { return !driver_gone_ && !std::exchange(driver_silent_, true); }
  bool Leave() { return !std::exchange(leaving_, true); }           // by a signal
  bool AskToDrain() { return !std::exchange(drain_asked_, true); }  // elastic: by a signal

  bool without_driver() const { return driver_gone_ || driver_silent_; }
  // The last word has been said.
  bool told() const { return told_; }
  // Whether the last word is to be said now: once, when the stop is over, after every rank's end.
  // What cannot be killed is not waited for. `all_told`: the ends of all ranks have been. `files`:
  // some rank's are not written yet, and a word about one that hangs must come before.
  bool TakeLastWord(std::optional<int> survivors, bool all_told, bool files);
  // `prepared`: there is a last word to be said.
  Go MayGo(bool prepared) const;

 private:
  bool driver_gone_ = false;
  bool driver_silent_ = false;
  bool leaving_ = false;
  bool drain_asked_ = false;
  bool told_ = false;
};

}  // namespace hvd::daemon
