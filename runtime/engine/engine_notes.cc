// What the executor tells about its work: counters always, spans while the timeline is on.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "runtime/engine/engine.h"

namespace hvd {
namespace {

static_assert(kWatchedSets >= kMaxProcessSets);

// Looks before a wait is worth the time of two clock readings.
constexpr int kFreeLooks = 64;

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
  name.described = kind;
  snprintf(name.description.data(), name.description.size(), IsNamed(kind) ? "%s '%.60s'" : "%s",
           KindName(kind), PlainName(*name.name).data());
}

}  // namespace

void Engine::NoteActivity(const Request& request, bool caller_waits) {
  RankActivity& activity = world_->activity();
  LocalName* name = request.local;
  const bool described = name->described == request.signature.kind && name->description[0] != 0;
  if (!described) Describe(request);
  if (!described || last_noted_ != name) {
    std::memcpy(activity.last, name->description.data(), sizeof(activity.last));
    last_noted_ = name;
  }
  activity.pending.store(static_cast<uint64_t>(pending_.load(std::memory_order_relaxed)) + 1,
                         std::memory_order_relaxed);
  if (caller_waits) NoteCallers(waiting_.load(std::memory_order_relaxed) + 1);
}

void Engine::UnnoteActivity() {
  RankActivity& activity = world_->activity();
  activity.pending.store(static_cast<uint64_t>(pending_.load(std::memory_order_relaxed)),
                         std::memory_order_relaxed);
  NoteCallers(waiting_.load(std::memory_order_relaxed));
}

void Engine::NoteCallers(int callers) {
  world_->activity().callers.store(static_cast<uint32_t>(callers), std::memory_order_relaxed);
}

void Engine::NoteWork(const LogEntry& entry, const Request* first, size_t tensors) {
  NotedWork& noted = noted_work_;
  RankActivity& activity = world_->activity();
  const LocalName* name = first != nullptr ? first->local : nullptr;
  const RequestKind kind = entry.signature.kind;
  ++noted.number;
  if (name != nullptr && noted.first == name && noted.kind == kind && noted.tensors == tensors) {
    activity.work.store(noted.number, std::memory_order_release);
    return;
  }
  noted = {noted.number, name, kind, tensors};
  char text[sizeof(activity.at_work)];
  char more[32] = "";
  if (tensors > 1) snprintf(more, sizeof(more), " and %zu more", tensors - 1);
  if (name != nullptr && IsNamed(kind)) {
    snprintf(text, sizeof(text), "%s '%.60s'%s", KindName(kind), PlainName(*name->name).data(),
             more);
  } else if (name != nullptr) {
    snprintf(text, sizeof(text), "%s%s", KindName(kind), more);
  } else {
    snprintf(text, sizeof(text), "%s of other ranks%s", KindName(kind), more);
  }
  BeginWork(&activity, noted.number, text);
}

// Time with nothing of ours under way is no waiting, and neither are a few looks.
absl::Status Engine::WaitForOthers(absl::FunctionRef<bool()> ready) {
  if (pending_.load(std::memory_order_relaxed) == 0) return world_->waiter().Until(ready);
  int looks = world_->waiter().policy().spins > kFreeLooks ? kFreeLooks : 1;
  int64_t begin_ns = 0;
  absl::Status waited = world_->waiter().Until([&] {
    if (ready()) return true;
    waited_ = true;
    if (looks > 0 && --looks == 0) begin_ns = Timeline::Now();
    return false;
  });
  if (begin_ns != 0) metrics_.Waited(Timeline::Now() - begin_ns);
  return waited;
}

// Without memory there is no answer, and nothing is lost by it.
void Engine::AnswerHvdd() try {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<PendingRequest> pending;
  for (const LocalName* name : names_.Pending()) {
    // What has been agreed on waits for nobody to ask for it.
    const bool agreed =
        name->board_number != 0 && !name->direct && world_->board().IsAgreed(name->board_number);
    if (!agreed) pending.push_back({name->name, name->pending});
  }
  for (const Request* request : deferred_) pending.push_back({&AgreedName(*request), request});
  for (const Request* request : pairs_.Pending()) pending.push_back({nullptr, request});
  stall_.Give(std::move(pending));
} catch (const std::bad_alloc&) {
}

void Engine::NoteDirect(const Request& request, int64_t begin_ns) {
  const Signature& signature = request.signature;
  const TracedTensor tensor = {request.local->ticket.number, PlainName(*request.local->name),
                               InputBytes(request)};
  metrics_.Done(signature.kind, tensor.bytes);
  if (!std::exchange(waited_, false)) metrics_.CameLast();
  if (!request.status.ok()) metrics_.Failed();
  if (request.submitted_ns == 0) return;  // the timeline was off
  timeline_.Record(Timeline::Negotiation(signature.kind), tensor, request.submitted_ns, begin_ns);
  timeline_.Record(Timeline::Operation(signature.kind), tensor, begin_ns);
}

void Engine::NoteRun(const RunTimes& times, absl::Span<Request* const> requests) {
  const int64_t end_ns = Timeline::Now();
  uint64_t bytes = 0;
  for (const Request* request : requests) {
    const RequestKind kind = request->signature.kind;
    // Behind the few of those that go directly, which are counted by themselves.
    const TracedTensor tensor = {Direct::kMostNumber + request->local->board_number,
                                 PlainName(*request->local->name), InputBytes(*request)};
    bytes += tensor.bytes;
    metrics_.Done(kind, tensor.bytes);
    if (!request->status.ok()) metrics_.Failed();
    if (request->submitted_ns == 0) continue;  // the timeline was off
    timeline_.Record(Timeline::Negotiation(kind), tensor, request->submitted_ns, times.batch_ns);
    if (times.begin_ns > times.batch_ns) {
      timeline_.Record(TraceActivity::kQueue, tensor, times.batch_ns, times.begin_ns);
    }
    timeline_.Record(WorkOf(kind, world_->transport() != nullptr), tensor, times.begin_ns, end_ns);
    timeline_.Record(Timeline::Operation(kind), tensor, times.batch_ns, end_ns);
  }
  if (requests.empty()) return;
  if (times.begin_ns == times.batch_ns && !std::exchange(waited_, false)) metrics_.CameLast();
  metrics_.Executed(requests[0]->signature.kind, end_ns - times.begin_ns);
  metrics_.Batch(static_cast<int>(requests.size()), bytes,
                 static_cast<uint64_t>(config_.fusion_threshold));
}

}  // namespace hvd
