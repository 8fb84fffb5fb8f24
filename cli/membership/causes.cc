// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/causes.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hvd::cli {

void Causes::Add(const Cause& cause) {
  const auto same = std::find_if(causes_.begin(), causes_.end(), [&](const Cause& known) {
    return absl::StrContains(cause.text, known.text) || absl::StrContains(known.text, cause.text);
  });
  if (same == causes_.end()) return causes_.push_back(cause);
  const bool says_more = cause.order == same->order && cause.text.size() > same->text.size();
  if (cause.order < same->order || says_more) *same = cause;
}

std::vector<std::string> Causes::Say() const {
  std::vector<Cause> causes = causes_;
  std::stable_sort(causes.begin(), causes.end(),
                   [](const Cause& a, const Cause& b) { return a.order < b.order; });
  std::vector<std::string> words;
  for (const Cause& cause : causes) {
    if (cause.order == Cause::kWord && causes.front().order != Cause::kWord) continue;
    words.push_back(cause.text);
  }
  return words;
}

bool Causes::Tell(const std::string& host) const {
  return std::any_of(causes_.begin(), causes_.end(), [&host](const Cause& cause) {
    return absl::StartsWith(cause.text, absl::StrCat(host, " "));
  });
}

}  // namespace hvd::cli
