// SPDX-License-Identifier: Apache-2.0
// The words between hvdrun's own processes: one frame a packet over a SOCK_SEQPACKET pair, so that
// a frame arrives whole or not at all, and the other side's death reads as the end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/descriptor.h"

namespace hvd::cli {

enum class FrameKind : uint32_t {
  // driver → console
  kOutput = 1,  // index: member - 1, which is the rank where members stay; is_stderr, end; number:
                // lines that only the file has; text: bytes
  kNotice,      // text, for stderr
  kStdinRoom,   // number: how many bytes of stdin may have been read in total
  kFinal,       // number: exit code; text: the verdict
  kEnding,      // the job ends: a reader that takes nothing for the grace is stuck from now on
  kDrain,       // after the last output: answered by kDrained
  kRank,        // index: as of kOutput, number: the rank that it is from now on; text: its host
  kStatus,      // text: what is being started (start_status.h); empty: nothing any more
  // console → driver
  kStdin,        // text: bytes; end
  kSignal,       // number: the signal that hvdrun got
  kOutputGone,   // nobody reads our stdout any more
  kOutputTaken,  // number: bytes of kOutput's texts in total, after which there is room for more
  kOutputLost,   // text: what was lost of our stdout or stderr, and why
  kDrained,      // all output is written, or lost
  kMaySkip,      // number: kSkipOut, kSkipErr, of outputs that may lack what a rank's file has
  // spawner → driver
  kStarted,    // index: host; fds: the child's stdin and stdout, its stderr
  kExited,     // index: host; number: wait status
  kFailed,     // index: host; text: why the child could not be made
  kLookText,   // text: the next piece of what the look's command has printed
  kLookEnded,  // after the last piece; index: a LookEnd; number: wait status; text: its last words
  // driver → spawner
  kStart,   // index: host; text: its command, words apart by zero bytes; empty: as before
  kKill,    // index: host; end: with its children, for nothing of the job runs there yet
  kHasten,  // index: host, whose remote shell is to send small words at once
  kLook,    // text: a command that prints the hosts, as above; number: the ms that it may take
};

// How a look for the hosts has ended. Only of the first is the wait status of interest.
enum class LookEnd : uint32_t {
  kEnded,
  kTooLong,  // killed, as its time was over
  kTooMuch,  // killed, as it printed more than kMaxLookText
  kNotMade,  // the last words say why there was no process
};
inline constexpr size_t kMaxLookText = size_t{1} << 20;

// The bits of kMaySkip's number.
inline constexpr uint64_t kSkipOut = 1;
inline constexpr uint64_t kSkipErr = 2;

struct Frame {
  FrameKind kind = FrameKind::kNotice;
  bool is_stderr = false;
  bool end = false;
  uint32_t index = 0;
  uint64_t number = 0;
  std::string text;  // at most kMaxFrameText bytes
  std::vector<Descriptor> fds = {};
};
inline constexpr size_t kMaxFrameText = 64 * 1024;

enum class FrameResult { kDone, kWouldBlock, kGone };

// Makes both ends, close-on-exec and non-blocking. False: errno says why.
bool MakeFramePair(Descriptor* one, Descriptor* other);

// Never blocks. kWouldBlock: nothing was sent, ask again when the socket is writable.
FrameResult SendFrame(int fd, const Frame& frame);

// Never blocks. kGone: the other side closed its end, or sent what is no frame.
FrameResult ReceiveFrame(int fd, Frame* frame);

}  // namespace hvd::cli
