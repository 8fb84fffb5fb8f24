// SPDX-License-Identifier: Apache-2.0
#include "cli/front/words/elastic_options.h"

#include <array>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/source_error.h"
#include "cli/front/words/duration.h"
#include "cli/front/words/option_values.h"
#include "hostfile/host_item.h"
#include "proto/page/host_page.h"

namespace hvd::cli {
namespace {

constexpr int kMostResets = 1'000'000;
constexpr size_t kMostOfScript = size_t{32} << 10;  // a packet between hvdrun's processes has it
constexpr double kShortestInterval = 0.1;           // each look is a process
constexpr double kShortestTime = 0.001;
constexpr double kShortestCooldown = 1;  // Horovod's, too

absl::Status ReadChange(const std::string& text, MembershipChange* field) {
  if (text == "now") *field = MembershipChange::kNow;
  if (text.empty() || text == "now" || text == "drain") return absl::OkStatus();
  return WrongValue({"--membership-change", text},
                    absl::StrCat(" must be drain or now, not ", Quoted(text)),
                    "for example --membership-change drain");
}

// "LOW HIGH"
absl::Status ReadCooldown(const std::string& text, ElasticOptions* elastic) {
  if (text.empty()) return absl::OkStatus();
  const auto wrong = [&](absl::string_view why) {
    return WrongValue({"--blacklist-cooldown-range", text}, why,
                      "for example --blacklist-cooldown-range 10 600");
  };
  const std::vector<std::string> ends = absl::StrSplit(text, absl::MaxSplits(' ', 1));
  const std::array fields = {&elastic->cooldown_least_s, &elastic->cooldown_most_s};
  for (size_t i = 0; i < fields.size(); ++i) {
    const absl::StatusOr<double> seconds = ParseDuration(ends[i]);
    if (!seconds.ok()) return wrong(absl::StrCat(": ", seconds.status().message()));
    *fields[i] = *seconds;
  }
  if (elastic->cooldown_least_s < kShortestCooldown) {
    return wrong(absl::StrCat(" must begin with ", kShortestCooldown, "s or more"));
  }
  if (elastic->cooldown_least_s <= elastic->cooldown_most_s) return absl::OkStatus();
  return wrong(": the first time is longer than the second");
}

absl::Status ReadScript(const std::string& text, const TypedOptions& typed, std::string* field) {
  if (text.empty()) return absl::OkStatus();
  const absl::string_view other = typed.has_hosts ? "-H" : typed.has_hostfile ? "--hostfile" : "";
  if (!other.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(other, " and --host-discovery-script exclude each other; keep one of them"));
  }
  if (absl::StripAsciiWhitespace(text).empty()) {
    return WrongValue({"--host-discovery-script", text}, " names no command",
                      "for example --host-discovery-script ./hosts.sh");
  }
  if (text.size() > kMostOfScript) {
    return absl::InvalidArgumentError(absl::StrCat("--host-discovery-script has ", text.size(),
                                                   " bytes; put that into a file of its own"));
  }
  *field = text;
  return absl::OkStatus();
}

// min_np ≤ -np ≤ max_np, as far as they are given.
absl::Status CheckOrder(const ElasticTexts& texts, const TypedOptions& typed) {
  const ElasticOptions& elastic = *typed.run.elastic;
  const int np = typed.np;
  if (np != 0 && elastic.min_np > np) {
    return WrongValue({"--min-np", texts.min_np}, absl::StrCat(" is more than -np ", np),
                      absl::StrCat("at most ", np, ", or a larger -np"));
  }
  if (elastic.max_np == 0) return absl::OkStatus();
  const int least = np != 0 ? np : elastic.min_np;
  if (elastic.max_np >= least) return absl::OkStatus();
  return WrongValue({"--max-np", texts.max_np},
                    absl::StrCat(" is less than ", np != 0 ? "-np " : "--min-np ", least),
                    absl::StrCat("at least ", least));
}

// Options that mean nothing in a job whose members stay.
absl::Status RefuseStatic(const ElasticTexts& texts) {
  const std::vector<Given> others = {{"--slots-per-host", texts.slots_per_host},
                                     {"--discovery-interval", texts.discovery_interval},
                                     {"--elastic-timeout", texts.timeout},
                                     {"--reset-limit", texts.reset_limit},
                                     {"--blacklist-cooldown-range", texts.cooldown_range},
                                     {"--membership-change", texts.change}};
  for (const Given& given : others) {
    if (given.value.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(given.name,
                     " is for jobs whose members come and go; --min-np, --max-np or "
                     "--host-discovery-script makes one"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadElastic(const ElasticTexts& texts, TypedOptions* typed) {
  const bool elastic_job =
      !texts.min_np.empty() || !texts.max_np.empty() || !texts.discovery_script.empty();
  if (!elastic_job) return RefuseStatic(texts);
  ElasticOptions& elastic = typed->run.elastic.emplace();
  elastic.min_np = typed->np;  // as Horovod's
  absl::Status status = ReadNumber({"--min-np", texts.min_np}, {1, kMaxRanks, 2}, &elastic.min_np);
  status.Update(ReadNumber({"--max-np", texts.max_np}, {1, kMaxRanks, 8}, &elastic.max_np));
  status.Update(ReadNumber({"--slots-per-host", texts.slots_per_host}, {1, kMaxLocalRanks, 4},
                           &elastic.slots_per_host));
  status.Update(ReadScript(texts.discovery_script, *typed, &elastic.discovery_script));
  status.Update(ReadTime({"--discovery-interval", texts.discovery_interval}, kShortestInterval,
                         &elastic.discovery_interval_s));
  elastic.interval_is_given = !texts.discovery_interval.empty();
  status.Update(
      ReadTime({"--elastic-timeout", texts.timeout}, kShortestTime, &elastic.elastic_timeout_s));
  status.Update(
      ReadNumber({"--reset-limit", texts.reset_limit}, {0, kMostResets, 10}, &elastic.reset_limit));
  status.Update(ReadCooldown(texts.cooldown_range, &elastic));
  status.Update(ReadChange(texts.change, &elastic.change));
  if (status.ok()) status = CheckOrder(texts, *typed);
  return status;
}

}  // namespace hvd::cli
