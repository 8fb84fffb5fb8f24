// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/commit_book.h"

#include "absl/strings/str_cat.h"

namespace hvd::rt {
namespace {

Agreement Differs(std::string why) { return {AgreementVerdict::kDiffers, std::move(why)}; }

}  // namespace

AgreementWords WordsOf(const AgreementSide& side) {
  const auto layout = static_cast<int64_t>(side.layout);
  return {side.number, -side.number, layout, -layout, side.is_change ? 1 : 0};
}

Agreement ReadAgreement(const AgreementWords& all) {
  const int64_t most = all[0], least = -all[1];
  if (least == kFailed) {
    return Differs("a rank could not do its part of the commit; its own error says why");
  }
  if (least == kChecks && most > kChecks) {
    return Differs(absl::StrCat("some ranks call hvd_state_commit (number ", most,
                                "), others hvd_check_hosts; all must call the same"));
  }
  if (least != most) {
    return Differs(absl::StrCat("ranks are at commit ", least, ", others at ", most,
                                "; all must call hvd_state_sync after hvd_init or hvd_reset"));
  }
  if (all[2] != -all[3]) {
    return Differs(
        "the replicated tensors of the state are not the same on all ranks; add the same names, "
        "shapes and dtypes everywhere");
  }
  return {all[4] != 0 ? AgreementVerdict::kChange : AgreementVerdict::kAgreed, ""};
}

}  // namespace hvd::rt
