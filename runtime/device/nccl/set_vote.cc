// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/nccl/set_vote.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/gpu/nccl_library.h"

namespace hvd::rt {
namespace {

// Returns the reason against NCCL; empty: there is none.
std::string WhyNotNccl(GpuOperations asked, absl::Span<const SetVote> votes,
                       absl::Span<const int> ranks) {
  for (size_t i = 0; i < votes.size(); ++i) {
    const SetVote& vote = votes[i];
    if (vote.nccl_version == 0) return absl::StrCat("rank ", ranks[i], ": ", vote.why_not.data());
    if (vote.nccl_version / 100 != votes[0].nccl_version / 100) {
      return absl::StrCat("rank ", ranks[0], " has NCCL ", NcclVersionText(votes[0].nccl_version),
                          ", rank ", ranks[i], " has NCCL ", NcclVersionText(vote.nccl_version));
    }
    if (vote.has_unordered != 0) {
      return absl::StrCat("rank ", ranks[i],
                          " uses NCCL in another process set, which was there alone when it began; "
                          "make all process sets before the first call on a GPU");
    }
    for (size_t j = 0; j < i; ++j) {
      const bool same = votes[j].host == vote.host && votes[j].gpu == vote.gpu;
      const bool may = vote.shares != 0 && votes[j].shares != 0 && asked == GpuOperations::kNccl;
      if (same && !may) {
        return absl::StrCat("ranks ", ranks[j], " and ", ranks[i], " share a GPU");
      }
    }
  }
  return "";
}

}  // namespace

void SetVote::SetWhyNot(absl::string_view why) {
  const size_t length = std::min(why.size(), why_not.size() - 1);
  why_not = {};
  std::copy_n(why.begin(), length, why_not.begin());
  std::replace(why_not.begin(), why_not.begin() + static_cast<ptrdiff_t>(length), '\n', ' ');
}

SetWay DecideWay(GpuOperations asked, absl::Span<const SetVote> votes,
                 absl::Span<const int> ranks) {
  if (asked == GpuOperations::kHost)
    return {SetWay::Kind::kHost, "HVD_GPU_OPERATIONS is host", false};
  // It lacks nothing that was asked for: it brings nothing.
  for (size_t i = 0; i < votes.size(); ++i) {
    if (votes[i].has_joined == 0) continue;
    return {SetWay::Kind::kHost,
            absl::StrCat("rank ", ranks[i], " has joined before it has shown a GPU"), false};
  }
  std::string why = WhyNotNccl(asked, votes, ranks);
  const bool ordered = std::any_of(votes.begin(), votes.end(),
                                   [](const SetVote& vote) { return vote.in_several != 0; });
  if (why.empty()) return {SetWay::Kind::kNccl, "", ordered};
  if (asked == GpuOperations::kAuto) return {SetWay::Kind::kHost, std::move(why), false};
  return {SetWay::Kind::kRefused, std::move(why), false};
}

}  // namespace hvd::rt
