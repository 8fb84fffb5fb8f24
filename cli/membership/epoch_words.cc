// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/epoch_words.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hvd::cli {
namespace {

constexpr size_t kMostCauses = 3;

std::string SayTime(double seconds) {
  return seconds < 0.1 ? absl::StrFormat("%.0f ms", seconds * 1000)
                       : absl::StrFormat("%.1f s", seconds);
}

}  // namespace

std::string SayRanks(int count, const char* did) {
  return absl::StrCat(count, count == 1 ? " rank " : " ranks ", did);
}

std::string JoinCauses(const std::vector<std::string>& causes) {
  std::string text;
  for (size_t i = 0; i < std::min(causes.size(), kMostCauses); ++i) {
    absl::StrAppend(&text, i > 0 ? ", " : "", causes[i]);
  }
  if (causes.size() > kMostCauses) {
    absl::StrAppend(&text, " and ", causes.size() - kMostCauses, " more");
  }
  return text;
}

std::string SayEpoch(const EpochRecord& record) {
  std::string text = absl::StrCat(record.cause, record.cause.empty() ? "" : "; ", "epoch ",
                                  record.number, ": ", SayRanks(record.ranks, "on "), record.hosts,
                                  record.hosts == 1 ? " host" : " hosts");
  if (record.rolled_back && record.commit > 0) {
    absl::StrAppend(&text, "; resumed at commit ", record.commit, " after ",
                    SayTime(record.seconds));
  } else if (record.rolled_back) {
    absl::StrAppend(&text, "; begun anew after ", SayTime(record.seconds),
                    ", since nothing was committed");
  } else if (record.number > 1) {
    absl::StrAppend(&text, "; no step lost");
  }
  return text;
}

}  // namespace hvd::cli
