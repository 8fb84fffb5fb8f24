#include "runtime/engine/engine.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <new>

#include "base/printable.h"
#include "runtime/collective/kernels/float_rules.h"
#include "runtime/engine/engine_role.h"
#include "runtime/transport/signals_blocked.h"

namespace hvd {
namespace {

absl::Status StillPending(const Request& request) {
  return absl::AlreadyExistsError("tensor " + ShownName(request.name) +
                                  " is already pending on this rank; wait for it before "
                                  "submitting the same name again");
}

// Needs no memory.
class PartRefused : public std::exception {
 public:
  explicit PartRefused(absl::string_view why) {
    snprintf(text_, sizeof(text_), "only a part of the group could be submitted: %.*s",
             static_cast<int>(why.size()), why.data());
  }
  const char* what() const noexcept override { return text_; }

 private:
  char text_[400];
};

}  // namespace

Engine::Engine(std::unique_ptr<EpochWorld> world, const EngineConfig& config,
               std::unique_ptr<Tuner> tuner)
    : world_(std::move(world)),
      config_(config),
      tuner_(std::move(tuner)),
      timeline_(world_->watch()),
      metrics_(world_->watch()),
      pairs_(world_.get()),
      stall_(world_->watch(), world_->members(), world_->rank()),
      batch_wait_us_(config.batch_wait_us),
      fusion_threshold_(config.fusion_threshold),
      by_number_(Board::kNumbers + 1) {
  (void)OutOfMemory();  // while there is some
  world_->board().set_before_mark([this](uint32_t number) {
    if (by_number_.size() <= number) by_number_.resize(2 * size_t{number});
  });
  world_->SetThresholds(config_.thresholds);
  world_->waiter().set_on_question([this] { AnswerHvdd(); });
  world_->activity().state.store(RankState::kIdle);
  const SignalsBlocked inherited;
  const FloatRules inherited_too;  // not what the program traps
  thread_ = std::thread([this] { ThreadBody(); });
  pthread_setname_np(thread_.native_handle(), "hvd-engine");
}

Engine::~Engine() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  timer_.ArmNow();
  world_->waiter().Ring();  // it may sleep as executor
  thread_.join();
  world_->waiter().set_on_question(nullptr);
  world_->board().set_before_mark(nullptr);
  world_->activity().pending.store(0);
  world_->activity().state.store(RankState::kLeft);
}

const absl::Status& OutOfMemory() {
  static const auto* const status =
      new absl::Status(absl::InternalError("out of memory; nothing was submitted"));
  return *status;
}

absl::Status Engine::SubmitLocked(Request* request, bool caller_waits) {
  if (!broken_.ok()) return broken_;
  request->local = nullptr;
  try {
    return EnterLocked(request, caller_waits);
  } catch (const std::bad_alloc& error) {
    return WithdrawLocked(request, error);
  }
}

// There was no memory for it. As if it had never come, unless others know already that it has.
absl::Status Engine::WithdrawLocked(Request* request, const std::exception& error) {
  LocalName* name = request->local;
  if (name == nullptr) return OutOfMemory();
  if (request->takes_turn()) names_.GiveTurnBack();
  if (name->pending != request) return OutOfMemory();
  name->pending = nullptr;
  UnnoteActivity();
  const bool told = request->signature.kind == RequestKind::kJoin || name->ticket.number != 0;
  if (!told) return OutOfMemory();
  world_->board().AbortThrown(error, *name->name);
  try {
    return world_->waiter().EndEpoch(kNoMemory);  // as BreakThrown
  } catch (const std::bad_alloc&) {               // not even for the words; later calls say them
  }
  return OutOfMemory();
}

// For what a direct mark needs once it is published.
void Engine::MakeRoomLocked() {
  if (marked_.size() == marked_.capacity()) marked_.reserve(2 * marked_.size() + 16);
}

absl::Status Engine::EnterLocked(Request* request, bool caller_waits) {
  if (joining_ != nullptr) return RefuseJoinedLocked(*request);
  // The others know already that nothing more comes.
  if (leaving_) return absl::AbortedError(kHasLeft);
  if (IsPair(request->signature.kind)) return EnterPairLocked(request);
  LocalName* name = names_.FindFor(*request);
  request->local = name;
  if (!name->prepared) {
    if (absl::Status prepared = PrepareLocked(name, *request); !prepared.ok()) {
      if (request->takes_turn()) names_.GiveTurnBack();
      return prepared;
    }
  }
  request->sequence = ++submissions_;
  name->distance = submissions_ - name->last_use;
  name->last_use = submissions_;
  request->submitted_ns = timeline_.Stamp();
  if (request->unnamed && (name->pending != nullptr || !deferred_.empty())) {
    deferred_.push_back(request);  // never past one that came before it
    AddPending(1);
    return absl::OkStatus();
  }
  if (name->pending != nullptr) {
    return StillPending(*request);
  }
  MakeRoomLocked();
  name->pending = request;
  NoteActivity(*request, caller_waits);
  if (absl::Status marked = MarkLocked(name); !marked.ok()) {
    name->pending = nullptr;
    UnnoteActivity();
    return marked;
  }
  AddPending(1);
  return absl::OkStatus();
}

absl::Status Engine::Submit(Request* request) {
  bool arm = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (absl::Status status = SubmitLocked(request, false); !status.ok()) return status;
    arm = !executing_;
  }
  world_->waiter().Ring();
  if (arm) ArmTimer();
  return absl::OkStatus();
}

absl::Status Engine::SubmitGroup(absl::Span<const std::unique_ptr<Request>> requests) {
  bool arm = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (absl::Status status = SubmitGroupLocked(requests); !status.ok()) return status;
    arm = !executing_;
  }
  world_->waiter().Ring();
  if (arm) ArmTimer();
  return absl::OkStatus();
}

// Nothing that can be known before keeps a later one out. What still does, the others must hear of:
// they wait for it.
absl::Status Engine::SubmitGroupLocked(absl::Span<const std::unique_ptr<Request>> requests) {
  Request& first = *requests.front();
  try {
    for (const auto& request : requests.subspan(1)) {
      request->unnamed = first.unnamed;
      if (first.unnamed) continue;  // these wait in order for as long as they must
      request->name = NamePart(first.name, request->signature.dtype);
      if (names_.Find(request->name)->pending != nullptr) return StillPending(*request);
    }
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
  if (absl::Status status = SubmitLocked(&first, false); !status.ok()) return status;
  absl::Status refused;
  for (const auto& request : requests.subspan(1)) {
    if (refused.ok()) refused = SubmitPartLocked(first, request.get());
    if (refused.ok()) continue;
    request->status = refused;
    EndLocked(request.get());  // its observer is told with all others: the epoch is over
  }
  return absl::OkStatus();
}

absl::Status Engine::SubmitPartLocked(const Request& first, Request* request) {
  absl::Status refused;
  try {
    if (first.unnamed) request->name = NamePart(AgreedName(first), request->signature.dtype);
    refused = SubmitLocked(request, false);
    if (refused.ok() || absl::IsAborted(refused)) return refused;
  } catch (const std::bad_alloc&) {
    refused = OutOfMemory();
  }
  const PartRefused error(refused == OutOfMemory() ? kNoMemory : refused.message());
  world_->board().AbortThrown(error, AgreedName(first));
  try {
    return world_->waiter().EndEpoch(kNoMemory);  // as BreakThrown
  } catch (const std::bad_alloc&) {
    return refused;
  }
}

// At once when a batch is full, and for sends and receives: there is nothing to go with.
void Engine::ArmTimer() {
  const size_t open = world_->board().open_bytes();
  const bool full =
      open > 0 && open >= static_cast<size_t>(fusion_threshold_.load(std::memory_order_relaxed));
  if (full || pairs_.active()) {
    timer_.ArmNow();
  } else {
    timer_.Arm(std::chrono::microseconds(batch_wait_us_.load(std::memory_order_relaxed)));
  }
}

absl::Status Engine::Run(Request* request) {
  std::unique_lock<std::mutex> lock(mutex_);
  request->alone = pending_.load(std::memory_order_relaxed) == 0;
  if (absl::Status status = SubmitLocked(request, true); !status.ok()) return status;
  if (executing_) {
    // Before the ring, so that an executor of ours which sleeps gives the role up.
    waiting_.fetch_add(1, std::memory_order_relaxed);
    lock.unlock();
    world_->waiter().Ring();
    lock.lock();
    return WaitLocked(request, &lock);
  }
  // The common case: an idle engine. The mark goes straight to the executor, which is this thread.
  if (BeginRunLocked(request, &lock)) {
    lock.unlock();
    OfferRole(waiting_.load(), true);
    return request->status;
  }
  {
    const Role role(this, &lock, request);
    world_->waiter().Ring();
    ExecuteUntil([request] { return request->done.load(std::memory_order_acquire); });
  }
  if (request->ended_role) {
    OfferRole(waiting_.load(), true);
    return request->status;
  }
  waiting_.fetch_add(1, std::memory_order_relaxed);
  return WaitLocked(request, &lock);
}

// With the role free. True: the request is done already.
bool Engine::BeginRunLocked(Request* request, std::unique_lock<std::mutex>* lock) {
  try {
    if (request->local != nullptr && MayEndAtOnceLocked(*request)) {
      world_->waiter().Ring();
      if (EndAtOnceLocked(request)) return true;
    }
    WatchMarkedLocked();
    return false;
  } catch (const std::bad_alloc& error) {
    const Role role(this, lock);
    if (request->local != nullptr) at_work_ = request->local->name;
    BreakThrown(error);
    return true;
  }
}

absl::Status Engine::Wait(Request* request) {
  NoteCallers(waiting_.fetch_add(1) + 1);
  std::unique_lock<std::mutex> lock(mutex_);
  return WaitLocked(request, &lock);
}

absl::Status Engine::WaitLocked(Request* request, std::unique_lock<std::mutex>* lock) {
  ExecuteOrWait([request] { return request->done.load(std::memory_order_acquire); }, lock);
  HandOver(lock);
  return request->status;
}

// Nobody can make `done` true between the look at it and the wait: that takes the lock.
void Engine::ExecuteOrWait(absl::FunctionRef<bool()> done, std::unique_lock<std::mutex>* lock) {
  while (!done()) {
    if (executing_) {
      changed_.wait(*lock);
      continue;
    }
    const Role role(this, lock);
    ExecuteUntil(done);
  }
}

// To a thread that waits, else to the engine thread when there is something left to do.
void Engine::HandOver(std::unique_lock<std::mutex>* lock) {
  const int others = waiting_.fetch_sub(1) - 1;
  if (broken_.ok()) NoteCallers(others);  // else it stays to be read what this rank was in
  const bool free = !executing_;
  lock->unlock();
  OfferRole(others, free);
}

void Engine::OfferRole(int others, bool free) {
  if (others > 0) {
    changed_.notify_all();
  } else if (free && MustListen()) {
    timer_.ArmNow();
  } else if (free && pending_.load() > 0) {
    ArmTimer();
  }
}

bool Engine::Poll(Request* request) {
  if (request->done.load(std::memory_order_acquire)) return true;
  std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || executing_) return false;
  {
    const Role role(this, &lock);
    PollDirect();
  }
  waiting_.fetch_add(1);
  HandOver(&lock);
  return request->done.load(std::memory_order_acquire);
}

void Engine::Drain() {
  if (pending_.load() == 0) return;
  std::unique_lock<std::mutex> lock(mutex_);
  Draining earlier{submissions_, {pending_.load()}};
  draining_.push_back(&earlier);
  NoteCallers(waiting_.fetch_add(1) + 1);
  ExecuteOrWait([&] { return earlier.left.load(std::memory_order_acquire) <= 0; }, &lock);
  std::erase(draining_, &earlier);
  HandOver(&lock);
}

}  // namespace hvd
