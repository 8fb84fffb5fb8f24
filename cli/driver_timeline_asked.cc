// The timeline in the driver's loop: begun by hvdrun's option or by a rank's hvd_start_timeline.
#include <sys/epoll.h>

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/driver_loop.h"

namespace hvd {
namespace {

constexpr double kPatienceS = 2;  // for the last of the hosts' streams, and for the file

}  // namespace

void Driver::BeginTimeline() {
  if (options_.timeline_path.empty()) return;
  const absl::Status begun = timeline_.Begin(options_.timeline_path);
  if (!begun.ok()) Say(absl::StrCat(std::string(begun.message()), "; the job runs without it"));
}

// The whole job records into one file, whoever asks for it; asking for the one that is being
// written is granted.
void Driver::OnTimelineAsked(int host, const v1::TimelineAsked& asked) {
  std::string path = asked.path();
  if (!path.empty()) path = (std::filesystem::path(options_.directory) / path).lexically_normal();
  v1::Command command;
  v1::SetTimeline& set = *command.mutable_set_timeline();
  set.set_rank(asked.rank());
  set.set_answer(true);
  if (path.empty() && timeline_.on()) {
    // The answer comes when the file is whole.
    timeline_enders_.push_back(asked.rank());
    if (timeline_.ending()) return;
    timeline_.BeginEnd();
    set.set_answer(false);
  } else if (timeline_.ending()) {
    set.set_error("the timeline is being ended; ask again after that");
  } else if (!path.empty() && !(timeline_.on() && path == timeline_.path())) {
    set.set_error(std::string(timeline_.Begin(path).message()));
  }
  if (!set.error().empty()) Say(set.error());
  set.set_on(!path.empty());
  for (size_t each = 0; each < ports_.size(); ++each) {
    if (set.error().empty() || static_cast<int>(each) == host) links_.Send(each, command);
  }
}

void Driver::AnswerTimelineEnded() {
  for (const uint32_t rank : std::exchange(timeline_enders_, {})) {
    if (rank >= static_cast<uint32_t>(options_.topology.size())) continue;
    v1::Command command;
    command.mutable_set_timeline()->set_answer(true);
    command.mutable_set_timeline()->set_rank(rank);
    links_.Send(options_.topology.place(static_cast<int>(rank)).host, command);
  }
}

// The job is over; what its ranks recorded last may be under way.
void Driver::WaitForTimeline() {
  give_up_at_ = MonotonicSeconds() + kPatienceS;
  for (size_t host = 0; host < ports_.size(); ++host) {
    // Nothing comes from one that never ran or is lost.
    if (state_.facts().hosts[host].fault != HostFact::kNone) timeline_.HostEnded(host);
  }
  while (launched_ && timeline_.open() && MonotonicSeconds() < give_up_at_) {
    Turn();
    CarryOut();
  }
  const std::string wrong = timeline_.Finish(kPatienceS);
  if (!wrong.empty()) Say(wrong);
}

}  // namespace hvd
