#include "runtime/engine/engine.h"

#include <pthread.h>

#include <chrono>

#include "runtime/transport/short_slices.h"

namespace hvd {
namespace {

constexpr char kLeaveName[] = "\x02shutdown";
// How long a leader waits at the end for the others' byes; they are on the way when nothing is
// wrong.
constexpr auto kByeTime = std::chrono::seconds(2);

}  // namespace

Engine::Engine(std::unique_ptr<EpochWorld> world, const EngineConfig& config,
               std::unique_ptr<Tuner> tuner)
    : world_(std::move(world)),
      config_(config),
      tuner_(std::move(tuner)),
      timeline_(world_->watch()),
      metrics_(world_->watch()),
      stall_(world_->watch(), world_->members()),
      batch_wait_us_(config.batch_wait_us),
      fusion_threshold_(config.fusion_threshold),
      by_number_(Board::kEntries + 1) {
  world_->SetThresholds(config_.thresholds);
  world_->activity().state.store(RankState::kIdle);
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
  world_->activity().pending.store(0);
  world_->activity().state.store(RankState::kLeft);
}

absl::Status Engine::SubmitLocked(Request* request) {
  if (!broken_.ok()) return broken_;
  LocalName* name = names_.FindFor(*request);
  request->local = name;
  request->sequence = ++submissions_;
  request->submitted_ns = timeline_.Stamp();
  if (request->unnamed && (name->pending != nullptr || !deferred_.empty())) {
    deferred_.push_back(request);  // never past one that came before it
    AddPending(1);
    return absl::OkStatus();
  }
  if (name->pending != nullptr) {
    return absl::AlreadyExistsError("tensor '" + request->name +
                                    "' is already pending on this rank; wait for it before "
                                    "submitting the same name again");
  }
  name->pending = request;
  if (absl::Status marked = MarkLocked(name); !marked.ok()) {
    name->pending = nullptr;
    return marked;
  }
  AddPending(1);
  NoteActivity(*request);
  return absl::OkStatus();
}

absl::Status Engine::Submit(Request* request) {
  bool arm = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (absl::Status status = SubmitLocked(request); !status.ok()) return status;
    arm = !executing_;
  }
  world_->waiter().Ring();
  if (arm) ArmTimer();
  return absl::OkStatus();
}

// At once when a batch is full.
void Engine::ArmTimer() {
  const size_t open = world_->board().open_bytes();
  if (open > 0 && open >= static_cast<size_t>(fusion_threshold_.load(std::memory_order_relaxed))) {
    timer_.ArmNow();
  } else {
    timer_.Arm(std::chrono::microseconds(batch_wait_us_.load(std::memory_order_relaxed)));
  }
}

absl::Status Engine::Run(Request* request) {
  std::unique_lock<std::mutex> lock(mutex_);
  request->alone = pending_.load(std::memory_order_relaxed) == 0;
  if (absl::Status status = SubmitLocked(request); !status.ok()) return status;
  if (executing_) {
    // Before the ring, so that an executor of ours which sleeps gives the role up.
    waiting_.fetch_add(1, std::memory_order_relaxed);
    lock.unlock();
    world_->waiter().Ring();
    lock.lock();
    return WaitLocked(request, &lock);
  }
  // The common case: an idle engine. The mark goes straight to the executor, which is this thread.
  if (MayEndAtOnceLocked(*request)) {
    world_->waiter().Ring();
    if (EndAtOnceLocked(request)) {
      lock.unlock();
      OfferRole(waiting_.load(), true);
      return request->status;
    }
  }
  WatchMarkedLocked();
  executing_ = true;
  runner_ = request;
  lock.unlock();
  world_->waiter().Ring();
  ExecuteUntil([request] { return request->done.load(std::memory_order_acquire); });
  if (request->ended_role) {
    OfferRole(waiting_.load(), true);
    return request->status;
  }
  lock.lock();
  executing_ = false;
  runner_ = nullptr;
  waiting_.fetch_add(1, std::memory_order_relaxed);
  return WaitLocked(request, &lock);
}

absl::Status Engine::Wait(Request* request) {
  waiting_.fetch_add(1);
  std::unique_lock<std::mutex> lock(mutex_);
  return WaitLocked(request, &lock);
}

absl::Status Engine::WaitLocked(Request* request, std::unique_lock<std::mutex>* lock) {
  const auto done = [request] { return request->done.load(std::memory_order_acquire); };
  while (!done()) {
    if (executing_) {
      changed_.wait(*lock);
      continue;
    }
    executing_ = true;
    lock->unlock();
    ExecuteUntil(done);
    lock->lock();
    executing_ = false;
  }
  HandOver(lock);
  return request->status;
}

// To a thread that waits, else to the engine thread when there is something left to do.
void Engine::HandOver(std::unique_lock<std::mutex>* lock) {
  const int others = waiting_.fetch_sub(1) - 1;
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
  executing_ = true;
  lock.unlock();
  while (StepDirect()) {
  }
  lock.lock();
  executing_ = false;
  waiting_.fetch_add(1);
  HandOver(&lock);
  return request->done.load(std::memory_order_acquire);
}

bool Engine::MustListen() const { return world_->leader() != nullptr && !stopping_; }

void Engine::ThreadBody() {
  (void)AskForShortSlices();  // it answers peers, beside a thread that computes
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    const bool work = pending_.load() > 0 || (MustListen() && broken_.ok());
    if (executing_ || waiting_.load() > 0 || !work) {
      lock.unlock();
      timer_.Wait();
      lock.lock();
      continue;
    }
    executing_ = true;
    lock.unlock();
    world_->waiter().set_beside(true);
    ExecuteUntil([this] {
      return waiting_.load(std::memory_order_relaxed) > 0 ||
             (pending_.load(std::memory_order_relaxed) == 0 && world_->leader() == nullptr);
    });
    world_->waiter().set_beside(false);
    lock.lock();
    executing_ = false;
    changed_.notify_all();
  }
}

void Engine::Drain() {
  if (pending_.load() == 0) return;
  std::vector<std::pair<LocalName*, Request*>> left;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (LocalName* name : names_.Pending()) left.emplace_back(name, name->pending);
  }
  // A request belongs to its submitter, who may free it once it is done; so watch the names, not
  // the requests.
  const auto gone = [this, &left] {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [name, request] : left) {
      if (name->pending == request) return false;
    }
    return true;
  };
  waiting_.fetch_add(1);
  std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
  while (!gone()) {
    lock.lock();
    if (executing_) {
      changed_.wait(lock);
    } else {
      executing_ = true;
      lock.unlock();
      ExecuteUntil(gone);
      lock.lock();
      executing_ = false;
    }
    lock.unlock();
  }
  lock.lock();
  HandOver(&lock);
}

void Engine::Shutdown() {
  Request leave;
  leave.name = kLeaveName;
  leave.signature.kind = RequestKind::kLeave;
  absl::Status status;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    status = SubmitLocked(&leave);
    if (world_->direct() != nullptr) world_->direct()->Leave(rounds_ + 1);
  }
  if (!status.ok() && !absl::IsAborted(status)) EndUnleft(status);
  if (status.ok()) {
    status = world_->board().NoteLeft();
    world_->waiter().Ring();
    const absl::Status left = Wait(&leave);
    if (status.ok()) status = left;
  }
  if (status.ok() && world_->leader() != nullptr) SayBye();
  // No other thread may be about to finish what ends here.
  std::unique_lock<std::mutex> lock(mutex_);
  TakeRole(&lock);
  lock.unlock();
  const absl::Status broken = world_->waiter().Check();
  if (broken.ok()) EndAll();
  if (!broken.ok()) Break(broken);  // a leader's peers on other hosts may not know yet
  lock.lock();
  executing_ = false;
}

// A rank that cannot leave with the others must not let them wait for it, nor its own threads.
void Engine::EndUnleft(const absl::Status& why) {
  const int rank = world_->board().GlobalRank(world_->rank());
  const std::string reason = absl::IsFailedPrecondition(why)
                                 ? "before its hvd_join has returned"
                                 : "and cannot leave in order: " + std::string(why.message());
  (void)world_->board()
      .Abort("rank " + std::to_string(rank) + " has called hvd_shutdown " + reason)
      .ok();  // every wait says it
}

// Whoever has it gives it up for one that waits, or when its work ends; all work ends.
void Engine::TakeRole(std::unique_lock<std::mutex>* lock) {
  waiting_.fetch_add(1);
  world_->waiter().Ring();  // the engine thread may sleep as executor
  changed_.wait(*lock, [this] { return !executing_; });
  executing_ = true;
  waiting_.fetch_sub(1);
}

// The last decision must reach the other hosts before this rank's transport goes.
void Engine::SayBye() {
  Leader& leader = *world_->leader();
  const auto end = std::chrono::steady_clock::now() + kByeTime;
  std::unique_lock<std::mutex> lock(mutex_);
  TakeRole(&lock);
  lock.unlock();
  (void)leader.SayBye().ok();
  while (std::chrono::steady_clock::now() < end && world_->waiter().Check().ok()) {
    world_->transport()->Progress();
    const absl::StatusOr<bool> stepped = leader.Step();
    const absl::StatusOr<bool> unsent = leader.HasUnsent();
    if (!stepped.ok() || !unsent.ok()) break;
    if (!*unsent && (!leader.is_root() || leader.HeardAllByes())) break;
  }
  lock.lock();
  executing_ = false;
}

}  // namespace hvd
