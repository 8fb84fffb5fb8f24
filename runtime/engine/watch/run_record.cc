// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/watch/run_record.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/engine/request/local_name.h"

namespace hvd::rt {
namespace {

bool Sums(RequestKind kind) {
  return kind == RequestKind::kAllreduce || kind == RequestKind::kReduceScatter;
}

TraceActivity WorkOf(RequestKind kind, bool several_hosts) {
  const bool sums = Sums(kind);
  if (several_hosts) return sums ? TraceActivity::kNetworkReduce : TraceActivity::kNetworkCopy;
  return sums ? TraceActivity::kHostReduce : TraceActivity::kHostCopy;
}

TraceActivity OnDevice(RequestKind kind) {
  return Sums(kind) ? TraceActivity::kDeviceReduce : TraceActivity::kDeviceCopy;
}

// Traces a request that goes by the board: its number comes behind the few numbers of requests that
// go directly, which are counted by themselves.
TracedTensor TracedOf(const Request& request) {
  // No name has the number 0: it is told anew what is called so.
  if (request.course.is_other) return {0, PlainName(request.name), InputBytes(request)};
  return {DirectTicket::kMostNumber + request.course.local->board.number,
          PlainName(*request.course.local->name), InputBytes(request)};
}

}  // namespace

void RunRecord::RanDirectly(const Request& request, int64_t begin_ns) {
  const Signature& signature = request.signature;
  const TracedTensor tensor = {request.course.local->direct.ticket.number,
                               PlainName(*request.course.local->name), InputBytes(request)};
  metrics_.Done(signature.kind, tensor.bytes);
  if (!std::exchange(waited_, false)) metrics_.CameLast();
  if (!request.result.status.ok()) metrics_.Failed();
  if (request.course.submitted_ns == 0) return;  // the timeline was off
  timeline_.Record(Timeline::Negotiation(signature.kind), tensor, request.course.submitted_ns,
                   begin_ns);
  timeline_.Record(Timeline::Operation(signature.kind), tensor, begin_ns);
}

void RunRecord::RanPair(const Request& request) {
  metrics_.Done(request.signature.kind, InputBytes(request));
  if (!request.result.status.ok()) metrics_.Failed();
}

void RunRecord::Ran(const RunTimes& times, absl::Span<Request* const> requests,
                    uint64_t threshold) {
  if (requests.empty()) return;
  const RequestKind kind = requests[0]->signature.kind;  // of all
  const RunSpans run = {kind, WorkOf(kind, several_hosts_), times, Timeline::Now()};
  uint64_t bytes = 0;
  for (const Request* request : requests) {
    const TracedTensor tensor = TracedOf(*request);
    bytes += tensor.bytes;
    if (!request->result.status.ok()) metrics_.Failed();
    TellTensor(run, tensor, request->course.submitted_ns);
  }
  NoteCameLast(times);
  metrics_.Executed(kind, run.end_ns - times.begin_ns);
  metrics_.Batch(static_cast<int>(requests.size()), bytes, threshold);
}

void RunRecord::TellTensor(const RunSpans& run, const TracedTensor& tensor, int64_t submitted_ns) {
  metrics_.Done(run.kind, tensor.bytes);
  if (submitted_ns == 0) return;  // the timeline was off
  const auto& [batch_ns, begin_ns] = run.times;
  timeline_.Record(Timeline::Negotiation(run.kind), tensor, submitted_ns, batch_ns);
  if (begin_ns > batch_ns) timeline_.Record(TraceActivity::kQueue, tensor, batch_ns, begin_ns);
  timeline_.Record(run.work, tensor, begin_ns, run.end_ns);
  timeline_.Record(Timeline::Operation(run.kind), tensor, batch_ns, run.end_ns);
}

// Counts only for the first run of a batch: the others wait for that one.
void RunRecord::NoteCameLast(const RunTimes& times) {
  if (times.begin_ns == times.batch_ns && !std::exchange(waited_, false)) metrics_.CameLast();
}

void RunRecord::Keep(absl::Span<Request* const> requests, LaunchedRun* run) {
  for (const Request* request : requests) {
    const TracedTensor tensor = TracedOf(*request);
    run->tensors.push_back({request->course.sequence, tensor.number, std::string(tensor.name),
                            tensor.bytes, request->course.submitted_ns});
  }
}

void RunRecord::Launched(const LaunchedRun& run) {
  if (!run.tensors.empty()) NoteCameLast({run.batch_ns, run.begin_ns});
}

// A device does one run after the other: one begins when that before it has finished. And a name
// may be launched again before that, so its spans are cut where they would lie over one another.
void RunRecord::Finished(const LaunchedRun& run, int64_t end_ns) {
  const int64_t begin_ns = std::min(std::max(run.begin_ns, device_end_ns_), end_ns);
  device_end_ns_ = end_ns;
  if (!timeline_.on()) traced_ends_.clear();
  uint64_t bytes = 0;
  for (const LaunchedTensor& tensor : run.tensors) {
    bytes += tensor.bytes;
    int64_t from = 0;
    if (tensor.submitted_ns != 0) from = std::exchange(traced_ends_[tensor.number], end_ns);
    const RunTimes times = {std::max(run.batch_ns, from), std::max(begin_ns, from)};
    const int64_t submitted_ns =
        tensor.submitted_ns == 0 ? 0
                                 : std::min(std::max(tensor.submitted_ns, from), times.batch_ns);
    TellTensor({run.kind, OnDevice(run.kind), times, end_ns},
               {tensor.number, tensor.name, tensor.bytes}, submitted_ns);
  }
  if (run.tensors.empty()) return;
  metrics_.Executed(run.kind, end_ns - begin_ns);
  metrics_.Batch(static_cast<int>(run.tensors.size()), bytes, run.threshold);
}

}  // namespace hvd::rt
