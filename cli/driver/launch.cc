// SPDX-License-Identifier: Apache-2.0
#include "cli/driver/launch.h"

#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "absl/strings/escaping.h"

namespace hvd::cli {

LauncherLimits ReadLauncherLimits() {
  LauncherLimits read;
  read.umask = umask(0);
  umask(read.umask);
  for (int resource = 0; resource < static_cast<int>(RLIM_NLIMITS); ++resource) {
    rlimit value;
    if (getrlimit(static_cast<__rlimit_resource>(resource), &value) != 0) continue;
    v1::Limit limit;
    limit.set_resource(resource);
    limit.set_soft(value.rlim_cur);
    limit.set_hard(value.rlim_max);
    read.limits.push_back(limit);
  }
  return read;
}

bool MakeJobSecrets(JobSecrets* secrets) {
  std::string bytes(64, '\0');
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return false;
  secrets->job = absl::BytesToHexString(bytes.substr(0, 16));
  secrets->marker = absl::BytesToHexString(bytes.substr(16, 16));
  secrets->epoch = bytes.substr(32);
  return true;
}

v1::PrepareHost MakePrepare(const RunOptions& options, const JobSecrets& secrets,
                            const LauncherLimits& limits, const PreparedHost& host) {
  v1::PrepareHost prepare;
  prepare.set_job(secrets.job);
  prepare.set_host(host.host);
  prepare.set_name(host.name);
  prepare.set_slots(host.shares);
  prepare.set_elastic(options.elastic.has_value());
  v1::Program* program = prepare.mutable_program();
  for (const std::string& word : options.command) program->add_argv(word);
  for (const std::string& entry : options.environment) program->add_environment(entry);
  program->set_directory(options.directory);
  program->set_umask(limits.umask);
  for (const v1::Limit& limit : limits.limits) *program->add_limits() = limit;
  prepare.set_lease_s(options.lease_s);
  prepare.set_grace_s(options.grace_s);
  const bool ours = !options.adoption.has_value();  // the output
  if (ours && !options.files_here) prepare.set_output_directory(options.output_directory);
  prepare.set_output_to_console(true);
  prepare.set_epoch_secret(secrets.epoch);
  prepare.set_unbound(!options.binds_cores);
  prepare.set_most_cores(options.most_cores);
  if (options.gpus_per_rank.has_value()) prepare.set_gpus_per_rank(*options.gpus_per_rank);
  for (const std::string& name : options.own_environment) prepare.add_own_environment(name);
  prepare.set_verbose(options.verbose > 0);
  prepare.set_stall_warn_s(options.stall_warn_s);
  prepare.set_stall_abort_s(options.stall_abort_s);
  if (options.adoption.has_value()) {
    prepare.set_adoption_key(options.adoption->key);
    prepare.set_claim_patience_s(kAdoptionPatienceS);
  }
  prepare.set_timeline(!options.timeline_path.empty());
  return prepare;
}

}  // namespace hvd::cli
