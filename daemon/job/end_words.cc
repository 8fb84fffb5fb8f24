// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/end_words.h"

#include <chrono>

#include "base/json.h"
#include "proto/exit_code.h"

namespace hvd::daemon {

v1::Event DiedEvent(const RankDeath& death) {
  const LinkFacts& link = death.link;
  v1::Event event;
  v1::MemberDied& died = *event.mutable_member_died();
  died.set_member(death.member);
  died.set_signal(death.signal());
  died.set_exit_code(death.exit_code());
  died.set_core_dumped(death.core_dumped());
  died.set_out_of_memory(death.out_of_memory);
  died.set_epoch(link.epoch);
  died.set_left(link.left);
  died.set_after_abort(link.after_abort || death.with_shim);
  died.set_aborted(link.aborted.cause);
  died.set_cause(link.cause);
  died.set_spoken_for(link.spoken_for);
  died.set_commit(link.kept.newest);
  died.set_steps(link.kept.steps);
  died.set_place(link.kept.place);
  return event;
}

v1::Event ExitedEvent(const RankDeath& death, bool shim_lost, TimePoint now) {
  const LinkFacts& link = death.link;
  v1::Event event;
  v1::RankExited& exited = *event.mutable_rank_exited();
  exited.set_member(death.member);
  exited.set_pid(death.pid);
  exited.set_exit_code(death.exit_code());
  exited.set_signal(death.signal());
  exited.set_core_dumped(death.core_dumped());
  exited.set_out_of_memory(death.out_of_memory);
  exited.set_after_abort(link.after_abort || shim_lost);
  exited.set_aborted(link.aborted.cause);
  if (link.aborted.rank >= 0) exited.set_abort_rank(link.aborted.rank);
  if (link.aborted.unreached >= 0) exited.set_unreached(link.aborted.unreached);
  for (const std::string& line : death.last_lines) exited.add_last_lines(line);
  exited.set_activity(link.activity);
  exited.set_joined(link.joined);
  exited.set_left(link.left);
  exited.set_refused(link.refused);
  exited.set_exec_error(death.exec_error);
  exited.set_told_after_us(
      std::chrono::duration_cast<std::chrono::microseconds>(now - death.at).count());
  exited.mutable_counts()->set_calls(link.counts.all_calls());
  exited.mutable_counts()->set_bytes(link.counts.all_bytes());
  exited.mutable_counts()->set_wait_ns(link.counts.wait_ns);
  exited.mutable_counts()->set_came_last(link.counts.came_last);
  exited.mutable_counts()->set_json(RenderJson(MetricsJson(link.counts)));
  return event;
}

std::array<v1::Event, 2> RefusedEvents(uint64_t member, const std::string& why) {
  std::array<v1::Event, 2> events;
  events[0].mutable_member_died()->set_member(member);
  events[0].mutable_member_died()->set_exit_code(kExitLauncher);
  v1::RankExited& end = *events[1].mutable_rank_exited();
  end.set_member(member);
  end.set_exit_code(kExitLauncher);
  end.set_exec_error(why);
  return events;
}

}  // namespace hvd::daemon
