// SPDX-License-Identifier: Apache-2.0
#include "proto/credit_window.h"

#include <algorithm>
#include <optional>

namespace hvd {
namespace {

constexpr auto kCalm = std::chrono::milliseconds(50);
constexpr auto kLate = std::chrono::milliseconds(100);

}  // namespace

uint64_t CreditWindow::Piece() const {
  const uint64_t available = window_ > in_flight() ? window_ - in_flight() : 0;
  return std::min({available, window_ / 4, kLargestPiece});
}

void CreditWindow::Sent(uint64_t bytes, TimePoint now) {
  sent_ += bytes;
  marks_.push_back({sent_, now, in_flight() >= window_ / 2});
}

void CreditWindow::Acked(uint64_t total, TimePoint now) {
  total = std::min(total, sent_);
  if (total <= acked_) return;
  const uint64_t newly = total - acked_;
  acked_ = total;
  std::optional<Mark> newest;
  while (!marks_.empty() && marks_.front().total <= total) {
    newest = marks_.front();
    marks_.pop_front();
  }
  if (!newest.has_value()) return;
  const Clock::duration delay = now - newest->at;
  base_ = std::min(base_, delay);
  const Clock::duration queued = delay - base_;
  if (queued > kLate && acked_ > shrunk_at_) {
    window_ -= window_ / 3;
    shrunk_at_ = sent_;
  } else if (queued < kCalm && newest->filled) {
    window_ += newly;
  }
  window_ = std::clamp(window_, kSmallest, kLargest);
}

}  // namespace hvd
