// SPDX-License-Identifier: Apache-2.0
// All settings of one environment: the values, where each came from, and what is wrong.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/settings/setting_text.h"
#include "proto/settings/settings.h"

namespace hvd {

class SettingValues {
 public:
  // `environment` has entries NAME=VALUE; of equal names the first counts, an empty value is none.
  // HVD_ names win over Horovod's. InvalidArgument has a line for every wrong value.
  static absl::StatusOr<SettingValues> Read(absl::Span<const std::string> environment);

  bool IsSet(SettingId id) const { return !Of(id).from.empty(); }
  // The number of a setting without a default is 0 unless it is set.
  double Number(SettingId id) const { return Of(id).value.number; }
  bool Flag(SettingId id) const { return Of(id).value.number != 0; }
  const std::string& Text(SettingId id) const { return Of(id).value.text; }

  // The value as one would write it.
  std::string Show(SettingId id) const;

  // A line for everything that the environment sets: "HVD_FUSION_THRESHOLD 32M (from
  // HOROVOD_FUSION_THRESHOLD)", and for what of Horovod's has no effect, with the reason.
  std::vector<std::string> Describe() const;
  // Names that look like a setting's misspelt: "HVD_FUSION_TRESHOLD is no setting; did you mean
  // …?", and settings that have no effect without another.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Effective {
    SettingValue value;
    std::string from;        // the variable; empty: the default
    std::string overridden;  // Horovod's variable that says something else
  };
  void WarnOfIdleAutotune();
  const Effective& Of(SettingId id) const { return effective_[static_cast<size_t>(id)]; }

  std::vector<Effective> effective_;  // in the order of Settings()
  std::vector<std::string> notes_, warnings_;
};

}  // namespace hvd
