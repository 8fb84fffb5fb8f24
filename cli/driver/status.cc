// SPDX-License-Identifier: Apache-2.0
// The driver's part for the line that a terminal shows while hosts start.
#include "cli/driver/loop.h"
#include "cli/report/start_status.h"

namespace hvd {
namespace {

constexpr double kLookS = 0.1;

}  // namespace

// Looks at all hosts, so it looks seldom; the end alone is told at once.
void Driver::TellStatus(double now) {
  if (!setup_.shows_status) return;
  const bool over = !state_.starting();
  if (over && status_.empty()) status_at_ = std::numeric_limits<double>::infinity();
  if (over ? status_.empty() : now < status_at_) return;
  if (!over) status_at_ = now + kLookS;
  std::string words = over ? "" : StartWords(state_.facts());
  if (words == status_) return;
  status_ = words;
  Frame frame;
  frame.kind = FrameKind::kStatus;
  frame.text = std::move(words);
  console_.Put(std::move(frame));
  SendConsole();
}

}  // namespace hvd
