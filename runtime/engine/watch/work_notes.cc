// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/watch/work_notes.h"

#include <cstdio>
#include <cstring>
#include <utility>

namespace hvd::rt {
namespace {

bool IsNamed(RequestKind kind) { return kind != RequestKind::kLeave && kind != RequestKind::kJoin; }

void SetText(LocalName* name, RequestKind kind) {
  name->noted.kind = kind;
  snprintf(name->noted.text.data(), name->noted.text.size(), IsNamed(kind) ? "%s '%.60s'" : "%s",
           KindName(kind), PlainName(*name->name).data());
}

// "allreduce 'grad.3' and 4 more"
void DescribeRun(RequestKind kind, const LocalName* first, size_t tensors, absl::Span<char> text) {
  char more[32] = "";
  if (tensors > 1) snprintf(more, sizeof(more), " and %zu more", tensors - 1);
  if (first != nullptr && IsNamed(kind)) {
    snprintf(text.data(), text.size(), "%s '%.60s'%s", KindName(kind),
             PlainName(*first->name).data(), more);
  } else if (first != nullptr) {
    snprintf(text.data(), text.size(), "%s%s", KindName(kind), more);
  } else {
    snprintf(text.data(), text.size(), "%s of other ranks%s", KindName(kind), more);
  }
}

}  // namespace

WorkNotes::WorkNotes(const WorkNotesPlace& place)
    : members_(place.members),
      rank_(place.rank),
      activity_(ActivityAt(place.watch)),
      runs_(place.watch, place.several_hosts),
      stall_(place.watch, place.members, place.rank) {
  activity_.state.store(RankState::kIdle, std::memory_order_relaxed);
}

void WorkNotes::Comes(const Request& request, const Counts& counts) {
  if (IsPair(request.signature.kind)) {
    DescribePair(request);
  } else {
    Describe(request.course.local, request.signature.kind);
  }
  Count({counts.pending + 1, counts.callers});
}

void WorkNotes::Describe(LocalName* name, RequestKind kind) {
  const bool described = name->noted.kind == kind && name->noted.text[0] != 0;
  if (!described) SetText(name, kind);
  if (described && last_noted_ == name) return;
  std::memcpy(activity_.last, name->noted.text.data(), sizeof(activity_.last));
  last_noted_ = name;
}

void WorkNotes::DescribePair(const Request& request) {
  snprintf(activity_.last, sizeof(activity_.last), "%s %s rank %d (tag %lld)",
           KindName(request.signature.kind),
           request.signature.kind == RequestKind::kSend ? "to" : "from", GlobalRank(request.peer),
           static_cast<long long>(request.tag));
  last_noted_ = nullptr;
}

void WorkNotes::Leaves() {
  activity_.pending.store(0, std::memory_order_relaxed);
  activity_.state.store(RankState::kLeft, std::memory_order_relaxed);
}

void WorkNotes::BeginRun(RequestKind kind, const Request* first, size_t tensors) {
  NotedRun& noted = noted_run_;
  const LocalName* name = first != nullptr ? first->course.local : nullptr;
  at_work_ = name != nullptr ? name->name : nullptr;
  ++noted.number;
  if (name != nullptr && noted.first == name && noted.kind == kind && noted.tensors == tensors) {
    activity_.work.number.store(noted.number, std::memory_order_release);
    return;
  }
  noted = {noted.number, name, kind, tensors};
  char text[sizeof(NotedWork::text)];
  DescribeRun(kind, name, tensors, absl::MakeSpan(text));
  BeginWork(&activity_.work, noted.number, text);
}

LaunchedRun WorkNotes::Launches(const RunTimes& times, absl::Span<Request* const> requests,
                                uint64_t threshold) {
  char what[sizeof(NotedWork::text)];
  DescribeRun(noted_run_.kind, noted_run_.first, noted_run_.tensors, absl::MakeSpan(what));
  LaunchedRun run;
  run.what = what;
  run.kind = noted_run_.kind;
  run.batch_ns = times.batch_ns;
  run.begin_ns = times.begin_ns;
  run.threshold = threshold;
  RunRecord::Keep(requests, &run);
  return run;
}

// When it broke, what this rank was in stays to be read.
void WorkNotes::EndRun(bool broke) {
  at_work_ = nullptr;
  if (!broke) EndWork(&activity_.work);
}

void WorkNotes::SetDeviceWork(uint64_t number, const LaunchedRun* oldest) {
  if (oldest == nullptr) return EndWork(&activity_.device);
  if (activity_.device.number.load(std::memory_order_relaxed) == number) return;
  EndWork(&activity_.device);
  BeginWork(&activity_.device, number, oldest->what.c_str());
}

}  // namespace hvd::rt
