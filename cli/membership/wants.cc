// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/wants.h"

#include "absl/strings/str_cat.h"

namespace hvd::cli {
namespace {

constexpr size_t kMostFailures = 5;

}  // namespace

void Wants::NoteFailure(std::string text) {
  failures_.push_back(std::move(text));
  if (failures_.size() > kMostFailures) failures_.erase(failures_.begin());
}

void Wants::End(MembershipEnd end, uint64_t member, const EndWords& words) {
  ended_ = true;
  MembershipAction action = {MembershipAction::kEnd, -1, words.why, member};
  // A program that fails by itself has been named already.
  if (!failures_.empty() && end != MembershipEnd::kProgramBug) {
    absl::StrAppend(&action.text, "\n  the last failures:");
    for (const std::string& failure : failures_) absl::StrAppend(&action.text, "\n    ", failure);
  }
  absl::StrAppend(&action.text, words.more);
  action.end = end;
  Add(std::move(action));
}

}  // namespace hvd::cli
