// SPDX-License-Identifier: Apache-2.0
#include "cli/driver/discovery.h"

#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace hvd::cli {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

HostBookRules RulesFor(const RunOptions& options) {
  HostBookRules rules;
  if (!options.elastic.has_value()) return rules;
  const ElasticOptions& elastic = *options.elastic;
  rules.unstated_slots = std::max(elastic.slots_per_host, 1);
  rules.is_local_host = options.is_local_host;
  if (!elastic.discovery_script.empty()) {
    rules.source = "output of --host-discovery-script";
  } else if (!elastic.manager_look.empty()) {
    rules.source = "nodes of " + options.manager;
    rules.has_planned_slots = true;
  } else {
    rules.is_file = true;
    rules.source = elastic.hostfile;
  }
  return rules;
}

std::vector<std::string> CommandFor(const ElasticOptions& elastic) {
  if (!elastic.discovery_script.empty()) return {"/bin/sh", "-c", elastic.discovery_script};
  if (!elastic.manager_look.empty()) return {"/bin/sh", "-c", elastic.manager_look};
  if (!elastic.hostfile.empty()) return {"cat", "--", elastic.hostfile};
  return {};
}

}  // namespace

Discovery::Discovery(const RunOptions& options, DiscoveryHandlers handlers)
    : handlers_(std::move(handlers)),
      elastic_(options.elastic.value_or(ElasticOptions())),
      manager_(options.manager),
      book_(RulesFor(options), options.hosts),
      command_(CommandFor(elastic_)),
      next_at_(options.elastic.has_value() ? 0 : kNever) {}

void Discovery::Tick(double now) {
  if (now < next_at_) return;
  if (!std::exchange(told_, true) && !book_.hosts().empty()) handlers_.discovered(book_.hosts());
  next_at_ = kNever;  // until it is answered
  if (command_.empty() || stopped_) return;
  text_.clear();
  Frame frame;
  frame.kind = FrameKind::kLook;
  frame.number = static_cast<uint64_t>(kLookBoundS * 1000);
  frame.text = absl::StrJoin(command_, absl::string_view("\0", 1));
  if (!handlers_.ask(frame)) next_at_ = now + elastic_.discovery_interval_s;
}

void Discovery::Heard(const Frame& frame, double now) {
  if (frame.kind == FrameKind::kLookText) text_ += frame.text;
  if (frame.kind != FrameKind::kLookEnded || stopped_) return;
  next_at_ = now + elastic_.discovery_interval_s;
  Judge(frame);
}

void Discovery::Judge(const Frame& ended) {
  FailedLook look;
  look.end = static_cast<LookEnd>(ended.index);
  look.wait_status = static_cast<int>(ended.number);
  if (look.end == LookEnd::kEnded && look.wait_status == 0) return Pass(book_.Take(text_));
  if (!elastic_.manager_look.empty() && look.end == LookEnd::kEnded &&
      WIFEXITED(look.wait_status) && WEXITSTATUS(look.wait_status) == kJobIsOver) {
    Stop();
    return handlers_.over(manager_);
  }
  look.last_words = ended.text;
  look.bound_s = kLookBoundS;
  Pass(book_.Fail(Explain(look)));
}

std::string Discovery::Explain(const FailedLook& look) const {
  if (!elastic_.discovery_script.empty()) return ExplainScript(elastic_.discovery_script, look);
  if (!elastic_.manager_look.empty()) return ExplainManager(manager_, look);
  return ExplainHostfile(elastic_.hostfile, look);
}

void Discovery::Pass(const HostNews& news) {
  if (!news.said.empty()) handlers_.say(news.said);
  if (news.changed) handlers_.discovered(book_.hosts());
  if (news.fatal.empty()) return;
  Stop();
  handlers_.failed(news.fatal);
}

}  // namespace hvd::cli
