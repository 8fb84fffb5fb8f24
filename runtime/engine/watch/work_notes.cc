#include "runtime/engine/watch/work_notes.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

namespace hvd {
namespace {

TraceActivity WorkOf(RequestKind kind, bool several_hosts) {
  const bool sums = kind == RequestKind::kAllreduce || kind == RequestKind::kReduceScatter;
  if (several_hosts) return sums ? TraceActivity::kNetworkReduce : TraceActivity::kNetworkCopy;
  return sums ? TraceActivity::kHostReduce : TraceActivity::kHostCopy;
}

bool IsNamed(RequestKind kind) { return kind != RequestKind::kLeave && kind != RequestKind::kJoin; }

// Into the request's name.
void Describe(const Request& request) {
  LocalName& name = *request.local;
  const RequestKind kind = request.signature.kind;
  name.noted.kind = kind;
  snprintf(name.noted.text.data(), name.noted.text.size(), IsNamed(kind) ? "%s '%.60s'" : "%s",
           KindName(kind), PlainName(*name.name).data());
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
    : several_hosts_(place.several_hosts),
      activity_(ActivityAt(place.watch)),
      timeline_(place.watch),
      metrics_(place.watch),
      stall_(place.watch, place.members, place.rank) {}

void WorkNotes::Comes(const Request& request, int pending) {
  LocalName* name = request.local;
  const bool described = name->noted.kind == request.signature.kind && name->noted.text[0] != 0;
  if (!described) Describe(request);
  if (!described || last_noted_ != name) {
    std::memcpy(activity_.last, name->noted.text.data(), sizeof(activity_.last));
    last_noted_ = name;
  }
  SetPending(pending + 1);
}

void WorkNotes::PairComes(const Request& request, int peer, int pending) {
  snprintf(activity_.last, sizeof(activity_.last), "%s %s rank %d (tag %lld)",
           KindName(request.signature.kind),
           request.signature.kind == RequestKind::kSend ? "to" : "from", peer,
           static_cast<long long>(request.tag));
  last_noted_ = nullptr;
  SetPending(pending + 1);
}

void WorkNotes::BeginRun(RequestKind kind, const Request* first, size_t tensors) {
  NotedRun& noted = noted_run_;
  const LocalName* name = first != nullptr ? first->local : nullptr;
  ++noted.number;
  if (name != nullptr && noted.first == name && noted.kind == kind && noted.tensors == tensors) {
    activity_.work.store(noted.number, std::memory_order_release);
    return;
  }
  noted = {noted.number, name, kind, tensors};
  char text[sizeof(activity_.at_work)];
  DescribeRun(kind, name, tensors, absl::MakeSpan(text));
  BeginWork(&activity_, noted.number, text);
}

void WorkNotes::RanDirectly(const Request& request, int64_t begin_ns) {
  const Signature& signature = request.signature;
  const TracedTensor tensor = {request.local->direct.ticket.number, PlainName(*request.local->name),
                               InputBytes(request)};
  metrics_.Done(signature.kind, tensor.bytes);
  if (!std::exchange(waited_, false)) metrics_.CameLast();
  if (!request.status.ok()) metrics_.Failed();
  if (request.submitted_ns == 0) return;  // the timeline was off
  timeline_.Record(Timeline::Negotiation(signature.kind), tensor, request.submitted_ns, begin_ns);
  timeline_.Record(Timeline::Operation(signature.kind), tensor, begin_ns);
}

void WorkNotes::RanPair(const Request& request) {
  metrics_.Done(request.signature.kind, InputBytes(request));
  if (!request.status.ok()) metrics_.Failed();
}

void WorkNotes::Ran(const RunTimes& times, absl::Span<Request* const> requests,
                    uint64_t threshold) {
  const int64_t end_ns = Timeline::Now();
  uint64_t bytes = 0;
  for (const Request* request : requests) {
    const RequestKind kind = request->signature.kind;
    // Behind the few of those that go directly, which are counted by themselves.
    const TracedTensor tensor = {DirectTicket::kMostNumber + request->local->board.number,
                                 PlainName(*request->local->name), InputBytes(*request)};
    bytes += tensor.bytes;
    metrics_.Done(kind, tensor.bytes);
    if (!request->status.ok()) metrics_.Failed();
    if (request->submitted_ns == 0) continue;  // the timeline was off
    timeline_.Record(Timeline::Negotiation(kind), tensor, request->submitted_ns, times.batch_ns);
    if (times.begin_ns > times.batch_ns) {
      timeline_.Record(TraceActivity::kQueue, tensor, times.batch_ns, times.begin_ns);
    }
    timeline_.Record(WorkOf(kind, several_hosts_), tensor, times.begin_ns, end_ns);
    timeline_.Record(Timeline::Operation(kind), tensor, times.batch_ns, end_ns);
  }
  if (requests.empty()) return;
  if (times.begin_ns == times.batch_ns && !std::exchange(waited_, false)) metrics_.CameLast();
  metrics_.Executed(requests[0]->signature.kind, end_ns - times.begin_ns);
  metrics_.Batch(static_cast<int>(requests.size()), bytes, threshold);
}

}  // namespace hvd
