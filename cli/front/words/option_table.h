// SPDX-License-Identifier: Apache-2.0
// The one place where hvdrun's options are declared: their names, help and where their text goes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/front/words/argv_normaliser.h"
#include "cli/front/words/setting_options.h"

namespace hvd::cli {

// A setting of the workers that was given by an option.
struct SettingText {
  const SettingOption* option = nullptr;
  std::string text;  // in the setting's words: with the option's unit, unless it has one
  std::string typed;
};

// The texts of options for jobs whose members come and go.
struct ElasticTexts {
  std::string min_np, max_np, slots_per_host, discovery_script, discovery_interval;
  std::string timeout, reset_limit, cooldown_range, change;
};

// The texts of the options as typed; checking them is the next step.
struct OptionTexts {
  std::string np;
  std::vector<std::string> hosts, hostfile;  // every mention
  std::string ssh_port, ssh_identity, rsh_agent, prefix;
  std::string start_timeout, timeout, lease, grace;
  std::string containment, bind, gpus_per_rank, stdin_target, output, compat;
  std::vector<std::string> forwarded;
  std::vector<SettingText> settings;
  ElasticTexts elastic;
  int verbose = 0;  // mentions
  bool timestamps = false, report_bindings = false;
  bool dry_run = false, help = false, version = false, check_build = false;
};

// Holds CLI11 away from the rest of the program (its header takes seconds to compile).
class OptionTable {
 public:
  OptionTable();
  ~OptionTable();

  std::vector<OptionSpelling> Spellings() const;
  // Canonical words, as NormaliseArgs gives them.
  absl::StatusOr<OptionTexts> Read(const std::vector<std::string>& words);
  std::string Help() const;

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace hvd::cli
