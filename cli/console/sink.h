// SPDX-License-Identifier: Apache-2.0
// One of the console's two outputs: lines on their way to it, and what becomes of them when its
// reader takes nothing or cannot be written to. Used by the console's one thread.
#pragma once

#include <cstdint>
#include <string>

#include "cli/console/output_printer.h"
#include "cli/console/output_writer.h"

namespace hvd::cli {

// For how long a reader has taken nothing of what waits for it.
class IdleTime {
 public:
  // `seconds` have gone by, and `progress` tells whether something was taken. Returns how long.
  double Add(double seconds, bool waits, uint64_t progress) {
    const bool moved = !waits || progress != progress_;
    progress_ = progress;
    return seconds_ = moved ? 0 : seconds_ + seconds;
  }
  double seconds() const { return seconds_; }

 private:
  uint64_t progress_ = 0;  // at the last look
  double seconds_ = 0;
};

class ConsoleSink {
 public:
  // `name`: "stdout" or "stderr", for messages. Throws like OutputWriter.
  ConsoleSink(int fd, std::string name, OutputPrinter printer, int bell)
      : fd_(fd), printer_(std::move(printer)), name_(std::move(name)), writer_(fd, bell) {}

  OutputPrinter& printer() { return printer_; }
  int fd() const { return fd_; }
  const std::string& name() const { return name_; }

  // Bytes that wait for the reader.
  size_t backlog() const { return printer_.pending().size() + writer_.waiting(); }
  // Nothing waits that could still be written.
  bool done() const { return open() ? backlog() == 0 : true; }
  // Its reader may still take something.
  bool open() const { return error_ == 0 && !stuck_; }

  // Hands what is printed to the writer; throws it away where it is not open. Returns the errno of
  // a write, once, when it has failed.
  int Pump();
  // The job ends, and `seconds` have gone by in which we could have written. A reader that takes
  // nothing for `patience` is stuck: what waits, and what is to come, is lost.
  void Age(double seconds, double patience);
  // While the job runs, `seconds` have gone by.
  void Watch(double seconds);
  // Its reader has taken nothing for that long.
  double idle_s() const { return watched_.seconds(); }
  // Counts the bytes that came while it is not open.
  void Lose(uint64_t bytes) { lost_ += bytes; }

  uint64_t lost() const { return lost_; }  // bytes
  int error() const { return error_; }

 private:
  void GiveUp();
  void Discard();

  const int fd_;
  OutputPrinter printer_;
  const std::string name_;
  OutputWriter writer_;
  IdleTime watched_;
  IdleTime aged_;  // since the job ends
  bool stuck_ = false;
  int error_ = 0;
  uint64_t lost_ = 0;
};

}  // namespace hvd::cli
