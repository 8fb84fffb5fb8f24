// SPDX-License-Identifier: Apache-2.0
// Whether the ranks' output has come to its end. Pure. A stream ends once; a rank has two.
#pragma once

#include <vector>

#include "base/clock.h"
#include "proto/deadlines.h"

namespace hvd::cli {

// For output after the last clean exit; its end waits for that of the ranks' files.
inline constexpr double kOutputPatienceS = SecondsOf(kFilePatience) + 2;

class OutputDrain {
 public:
  explicit OutputDrain(int ranks) : streams_(ranks) {}

  void Add() { streams_.emplace_back(); }  // the next rank
  // The rank has been started: its streams are waited for.
  void Started(int rank);
  // Its host is lost: what has not come never will.
  void Lost(int rank);
  // Something has come; `end`: and the stream has ended.
  void Moved(int rank, bool end, double now);
  // Something has happened behind which output may follow.
  void MayFollow(double now) { last_ = now; }
  // While paused, the console is not taking any.
  void Pause(bool paused, double now);

  // Every stream has ended, or nothing came for `patience_s` although it could.
  bool Done(double patience_s, double now) const;
  bool Ended(int rank) const { return !streams_[rank].started || streams_[rank].ended == kStreams; }
  // How many streams of the ranks that were started have not ended.
  int open() const { return open_; }
  bool paused() const { return paused_; }
  // When to look again, if it is not done.
  double NextLook(double patience_s) const;

 private:
  static constexpr int kStreams = 2;  // of a rank
  struct Streams {
    bool started = false;
    int ended = 0;
  };
  std::vector<Streams> streams_;  // by rank
  int open_ = 0;                  // of started ranks
  double last_ = 0;
  bool paused_ = false;
};

}  // namespace hvd::cli
