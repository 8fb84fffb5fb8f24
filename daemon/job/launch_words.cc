// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/launch_words.h"

#include <sys/resource.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hvd::daemon {
namespace {

void NoteLimits(const v1::Program& program, std::vector<std::string>* notes) {
  for (const v1::Limit& limit : program.limits()) {
    rlimit here{};
    if (limit.resource() != RLIMIT_MEMLOCK || getrlimit(RLIMIT_MEMLOCK, &here) != 0) continue;
    if (limit.soft() <= here.rlim_max) continue;
    notes->push_back(absl::StrCat("the hard limit of locked memory (", here.rlim_max,
                                  " bytes) is below the launcher's; raise memlock there for RDMA"));
  }
}

std::string WeakNote(const ShimProcess& shim) {
  const std::string why = shim.weaker_why.empty()
                              ? "as --containment says"
                              : absl::StrCat("because stronger ones fail (", shim.weaker_why, ")");
  return absl::StrCat("containment by ", LevelName(shim.level), " only, ", why,
                      ": should hvdd and its shim both be killed at once, the ranks there would "
                      "live on");
}

}  // namespace

v1::Event LaunchedEvent(const HostJob& job, ContainmentLevel level) {
  v1::Event event;
  v1::Launched& launched = *event.mutable_launched();
  launched.set_containment(static_cast<v1::Containment>(level));
  for (const Gpu& gpu : job.facts().devices.gpus) launched.add_gpu_uuids(gpu.uuid);
  TellShares(job.shares(), &launched);
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  launched.set_host_name(name);
  launched.set_pid(getpid());
  return event;
}

v1::Event LaunchFailedEvent(int exit_code, const std::string& message) {
  v1::Event event;
  event.mutable_launch_failed()->set_exit_code(exit_code);
  event.mutable_launch_failed()->set_message(message);
  return event;
}

std::vector<std::string> LaunchNotes(const HostJob& job, const ShimProcess& shim) {
  std::vector<std::string> notes;
  NoteLimits(job.prepared().program(), &notes);
  if (!shim.listener.valid()) {
    notes.push_back(
        "no directory for hvdd's socket can be written to ($TMPDIR, /tmp, /dev/shm, /var/tmp): a "
        "rank that starts hvd in a process of its own making may not find its job");
  }
  // Adopted ranks are held together by what their launcher has.
  if (shim.level != ContainmentLevel::kNamespace && job.prepared().adoption_key().empty()) {
    notes.push_back(WeakNote(shim));
  }
  if (!job.shares().note.empty()) notes.push_back(job.shares().note);
  return notes;
}

std::string AwaitedNote(const HostJob& job) {
  const std::vector<int> ranks = job.Awaited();
  if (ranks.empty()) return "";
  return absl::StrCat("waits for hvd's init of rank ", absl::StrJoin(ranks, ", "), ", for ",
                      job.prepared().claim_patience_s(), " s at most");
}

}  // namespace hvd::daemon
