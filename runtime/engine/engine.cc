#include "runtime/engine/engine.h"

#include <pthread.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

namespace hvd {
namespace {

constexpr char kLeaveName[] = "\x02shutdown";
// How long a leader waits at the end for the others' byes; they are on the way when nothing is
// wrong.
constexpr auto kByeTime = std::chrono::seconds(2);
// Errors about the request itself leave the epoch whole; anything else means that ranks have lost
// one another.
bool BreaksEpoch(const absl::Status& status) {
  return !status.ok() && !absl::IsInvalidArgument(status) && !absl::IsFailedPrecondition(status) &&
         !absl::IsResourceExhausted(status);
}

}  // namespace

Engine::Engine(std::unique_ptr<EpochWorld> world)
    : world_(std::move(world)),
      timeline_(world_->page(), world_->place().local_rank, 0),
      metrics_(world_->page(), world_->place().local_rank, 0) {
  world_->activity().state.store(RankState::kIdle);
  thread_ = std::thread([this] { ThreadBody(); });
  pthread_setname_np(thread_.native_handle(), "hvd-engine");
}

Engine::~Engine() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  thread_wake_.notify_all();
  world_->waiter().Ring();  // it may sleep as executor
  thread_.join();
  world_->activity().state.store(RankState::kLeft);
}

void Engine::NoteActivity(const Request& request) {
  RankActivity& activity = world_->activity();
  const Signature& s = request.signature;
  char* at = activity.last;
  char* const end = activity.last + sizeof(activity.last) - 1;
  const auto put = [&](const char* text, size_t length) {
    const size_t part = std::min<size_t>(length, static_cast<size_t>(end - at));
    std::memcpy(at, text, part);
    at += part;
  };
  const char* kind = KindName(s.kind);
  put(kind, strlen(kind));
  if (s.kind != RequestKind::kLeave) {
    put(" '", 2);
    put(request.name.data(), std::min<size_t>(request.name.size(), 60));
    put("'", 1);
  }
  *at = 0;
  activity.pending.store(static_cast<uint64_t>(pending_.load(std::memory_order_relaxed)),
                         std::memory_order_relaxed);
}

// Unnamed calls are matched by their order, whatever they are, so that two ranks which call
// different things get a mismatch and not silence.
void Engine::NameUnnamed(Request* request) {
  request->name = "unnamed call " + std::to_string(++unnamed_);
}

absl::Status Engine::SubmitLocked(Request* request) {
  if (!broken_.ok()) return broken_;
  if (request->unnamed) NameUnnamed(request);
  const auto [at, fresh] = by_name_.try_emplace(request->name, request);
  if (!fresh) {
    return absl::AlreadyExistsError("tensor '" + request->name +
                                    "' is already pending on this rank; wait for it before "
                                    "submitting the same name again");
  }
  const absl::StatusOr<uint32_t> number = world_->board().Mark(request->name, request->signature);
  if (!number.ok()) {
    by_name_.erase(at);
    return number.status();
  }
  by_number_[*number] = request;
  request->submitted_ns = timeline_.Stamp();
  pending_.fetch_add(1, std::memory_order_relaxed);
  NoteActivity(*request);
  return absl::OkStatus();
}

absl::Status Engine::Submit(Request* request) {
  bool wake = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (absl::Status status = SubmitLocked(request); !status.ok()) return status;
    wake = !executing_;
  }
  world_->waiter().Ring();
  if (wake) thread_wake_.notify_one();
  return absl::OkStatus();
}

absl::Status Engine::Run(Request* request) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (absl::Status status = SubmitLocked(request); !status.ok()) return status;
    waiting_.fetch_add(
        1);  // before the ring, so that an executor of ours which sleeps gives the role up
  }
  world_->waiter().Ring();
  return WaitCounted(request);
}

absl::Status Engine::Wait(Request* request) {
  waiting_.fetch_add(1);
  return WaitCounted(request);
}

absl::Status Engine::WaitCounted(Request* request) {
  const auto done = [request] { return request->done.load(std::memory_order_acquire); };
  {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!done()) {
      if (executing_) {
        changed_.wait(lock);
        continue;
      }
      executing_ = true;
      lock.unlock();
      ExecuteUntil(done);
      lock.lock();
      executing_ = false;
    }
    // Hand over: to a thread that waits, else to the engine thread when there is something left to
    // do.
    const int others = waiting_.fetch_sub(1) - 1;
    const bool work = !executing_ && (pending_.load() > 0 || MustListen());
    lock.unlock();
    if (others > 0) changed_.notify_all();
    if (work && others == 0) thread_wake_.notify_one();
  }
  return request->status;
}

bool Engine::MustListen() { return world_->leader() != nullptr && !stopping_; }

void Engine::ThreadBody() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    const bool work = pending_.load() > 0 || (MustListen() && broken_.ok());
    if (executing_ || waiting_.load() > 0 || !work) {
      thread_wake_.wait(lock);
      continue;
    }
    executing_ = true;
    lock.unlock();
    ExecuteUntil([this] {
      return waiting_.load(std::memory_order_relaxed) > 0 ||
             (pending_.load(std::memory_order_relaxed) == 0 && world_->leader() == nullptr);
    });
    lock.lock();
    executing_ = false;
    changed_.notify_all();
  }
}

template <class Stop>
void Engine::ExecuteUntil(Stop stop) {
  RankActivity& activity = world_->activity();
  while (!stop()) {
    if (Step()) continue;
    bool broken = false;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      broken = !broken_.ok();
    }
    if (stopping_.load()) return;
    if (broken) return Break(absl::OkStatus());
    activity.state.store(RankState::kWaiting, std::memory_order_relaxed);
    const absl::Status waited = WaitForOthers([&] {
      return stop() || world_->board().HasNext() ||
             (world_->leader() != nullptr && StepAgreement()) ||
             stopping_.load(std::memory_order_relaxed);
    });
    activity.state.store(RankState::kIdle, std::memory_order_relaxed);
    if (!waited.ok()) return Break(waited);
  }
}

// Time with nothing of ours under way is no waiting.
absl::Status Engine::WaitForOthers(absl::FunctionRef<bool()> ready) {
  if (pending_.load(std::memory_order_relaxed) == 0) return world_->waiter().Until(ready);
  const int64_t begin_ns = Timeline::Now();
  absl::Status waited = world_->waiter().Until(ready);
  metrics_.Waited(Timeline::Now() - begin_ns);
  return waited;
}

// One thing that can be done now; false if there is nothing.
bool Engine::Step() {
  if (world_->leader() != nullptr && StepAgreement()) return true;
  return StepLog();
}

bool Engine::StepAgreement() {
  const absl::StatusOr<bool> moved = world_->leader()->Step();
  if (!moved.ok()) {
    (void)world_->waiter()
        .EndEpoch(std::string(moved.status().message()))
        .ok();  // the epoch is aborted now: the caller's wait says so
    return false;
  }
  if (*moved) world_->waiter().Ring();
  return *moved;
}

bool Engine::StepLog() {
  Board& board = world_->board();
  if (!board.HasNext()) return false;
  const LogEntry entry = board.Next();
  Request* request = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = by_number_.find(entry.number);
    if (found != by_number_.end()) request = found->second;
  }
  if (request == nullptr) {
    AbortEpoch(world_->page(), "the schedule names a tensor that this rank has not submitted",
               world_->event_fds());
    return false;
  }
  Execute(request, entry);
  return true;
}

void Engine::Execute(Request* request, const LogEntry& entry) {
  const int64_t begin_ns = Timeline::Now();
  request->status = ExecuteRequest(request, entry, &world_->collectives());
  NoteExecuted(*request, entry.number, begin_ns);
  if (BreaksEpoch(request->status)) {
    Break(absl::IsAborted(request->status)
              ? request->status
              : world_->waiter().EndEpoch(std::string(request->status.message())));
    return;
  }
  world_->board().Advance();
  world_->activity().calls.fetch_add(1, std::memory_order_relaxed);
  Complete(request, entry.number);
}

void Engine::NoteExecuted(const Request& request, uint32_t number, int64_t begin_ns) {
  const int64_t end_ns = Timeline::Now();
  const Signature& signature = request.signature;
  const uint64_t bytes = InputBytes(request);
  metrics_.Done(signature.kind, bytes);
  metrics_.Executed(signature.kind, end_ns - begin_ns);
  if (!request.status.ok()) metrics_.Failed();
  if (!timeline_.on()) return;
  const TracedTensor tensor = {number, request.name, bytes};
  timeline_.Record(Timeline::Negotiation(signature.kind), tensor, request.submitted_ns, begin_ns);
  timeline_.Record(Timeline::Operation(signature.kind), tensor, begin_ns, end_ns);
}

// After this the submitter may free the request. Only those who wait on `changed_` need a wake-up;
// the one who runs this as waiter sees `done` itself.
void Engine::Complete(Request* request, uint32_t number) {
  bool notify = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    by_number_.erase(number);
    by_name_.erase(request->name);
    const int left = pending_.fetch_sub(1, std::memory_order_relaxed) - 1;
    world_->activity().pending.store(static_cast<uint64_t>(left), std::memory_order_relaxed);
    request->done.store(true, std::memory_order_release);
    notify = waiting_.load(std::memory_order_relaxed) > 0;
  }
  if (notify) changed_.notify_all();
}

void Engine::CompleteAll(const absl::Status& status) {
  std::vector<Request*> all;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (broken_.ok()) broken_ = status;
    for (const auto& [name, request] : by_name_) all.push_back(request);
    by_name_.clear();
    by_number_.clear();
    pending_.store(0);
    for (Request* request : all) {
      request->status = broken_;
      request->done.store(true, std::memory_order_release);
    }
  }
  changed_.notify_all();
}

// The executor found the epoch broken: everything pending ends, and a leader tells the other hosts.
void Engine::Break(const absl::Status& status) {
  CompleteAll(status);
  const bool aborted = world_->page()->aborted.load(std::memory_order_acquire) != 0;
  if (aborted && world_->leader() != nullptr) {
    world_->leader()->SpreadAbort(world_->page()->abort_text);
  }
}

void Engine::Drain() {
  std::vector<std::string> names;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [name, request] : by_name_) names.push_back(name);
  }
  // A request belongs to its submitter, who may free it once it is done; so wait for names, not for
  // requests.
  const auto gone = [this, &names] {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const std::string& name : names) {
      if (by_name_.count(name) > 0) return false;
    }
    return true;
  };
  waiting_.fetch_add(1);
  while (!gone()) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (executing_) {
      changed_.wait(lock);
      continue;
    }
    executing_ = true;
    lock.unlock();
    ExecuteUntil(gone);
    lock.lock();
    executing_ = false;
  }
  const int others = waiting_.fetch_sub(1) - 1;
  if (others > 0) changed_.notify_all();
  if (others == 0) thread_wake_.notify_one();
}

void Engine::Shutdown() {
  Request leave;
  leave.name = kLeaveName;
  leave.signature.kind = RequestKind::kLeave;
  absl::Status status;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    status = SubmitLocked(&leave);
  }
  if (status.ok()) {
    status = world_->board().NoteLeft();
    world_->waiter().Ring();
    const absl::Status left = Wait(&leave);
    if (status.ok()) status = left;
  }
  if (status.ok() && world_->leader() != nullptr) {
    // The last decision must reach the other hosts before this rank's transport goes.
    Leader& leader = *world_->leader();
    const auto end = std::chrono::steady_clock::now() + kByeTime;
    std::unique_lock<std::mutex> lock(mutex_);
    waiting_.fetch_add(1);
    world_->waiter().Ring();  // the engine thread may sleep as executor
    changed_.wait_until(lock, end, [this] { return !executing_; });
    executing_ = true;
    waiting_.fetch_sub(1);
    lock.unlock();
    (void)leader.SayBye().ok();
    while (std::chrono::steady_clock::now() < end) {
      world_->transport()->Progress();
      const absl::StatusOr<bool> stepped = leader.Step();
      const absl::StatusOr<bool> unsent = leader.HasUnsent();
      if (!stepped.ok() || !unsent.ok()) break;
      if (!*unsent && (!leader.is_root() || leader.HeardAllByes())) break;
    }
    lock.lock();
    executing_ = false;
  }
  CompleteAll(absl::AbortedError("this rank has called hvd_shutdown"));
}

}  // namespace hvd
