// SPDX-License-Identifier: Apache-2.0
#include "cli/console/sink.h"

#include <algorithm>

namespace hvd::cli {
namespace {

// The rest stays with the printer, where a line may still go on.
constexpr size_t kHandedOver = 64 * 1024;

}  // namespace

int ConsoleSink::Pump() {
  const int failed = error_ == 0 ? writer_.error() : 0;
  if (failed != 0) error_ = failed;
  if (!open()) {
    Discard();
    return failed;
  }
  const size_t waiting = writer_.waiting();
  if (waiting >= kHandedOver || printer_.pending().empty()) return 0;
  const size_t bytes = std::min(printer_.pending().size(), kHandedOver - waiting);
  writer_.Put(printer_.pending().substr(0, bytes));
  printer_.Written(bytes);
  return 0;
}

void ConsoleSink::Age(double seconds, double patience) {
  if (!open()) return;
  if (aged_.Add(seconds, backlog() != 0, writer_.progress()) >= patience) GiveUp();
}

void ConsoleSink::Watch(double seconds) {
  watched_.Add(seconds, open() && backlog() != 0, writer_.progress());
}

void ConsoleSink::GiveUp() {
  stuck_ = true;
  Discard();
}

void ConsoleSink::Discard() {
  const size_t printed = printer_.pending().size();
  lost_ += printed + writer_.Drop();
  printer_.Written(printed);
}

}  // namespace hvd::cli
