// SPDX-License-Identifier: Apache-2.0
#include "cli/job/output_drain.h"

#include <limits>
#include <utility>

namespace hvd::cli {
void OutputDrain::Started(int rank) {
  Streams& streams = streams_[rank];
  if (!std::exchange(streams.started, true)) open_ += kStreams - streams.ended;
}

void OutputDrain::Lost(int rank) {
  Streams& streams = streams_[rank];
  if (streams.started) open_ -= kStreams - streams.ended;
  streams.ended = kStreams;
}

void OutputDrain::Moved(int rank, bool end, double now) {
  last_ = now;
  if (!end || rank < 0 || rank >= static_cast<int>(streams_.size())) return;
  Streams& streams = streams_[rank];
  if (streams.ended == kStreams) return;
  ++streams.ended;
  if (streams.started) --open_;
}

void OutputDrain::Pause(bool paused, double now) {
  if (paused || paused_) last_ = now;
  paused_ = paused;
}

bool OutputDrain::Done(double patience_s, double now) const {
  return open_ <= 0 || (!paused_ && now >= last_ + patience_s);
}

double OutputDrain::NextLook(double patience_s) const {
  return paused_ ? std::numeric_limits<double>::infinity() : last_ + patience_s;
}

}  // namespace hvd::cli
