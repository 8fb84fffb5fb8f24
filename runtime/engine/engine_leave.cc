// How a rank leaves: in order with all others, or not.
#include <chrono>
#include <new>

#include "runtime/engine/engine_role.h"

namespace hvd {
namespace {

constexpr char kLeaveName[] = "\x01shutdown";  // as kOwnName
// How long a leader waits at the end for the others' byes; they are on the way when nothing is
// wrong. One that comes later is nobody's: FrameChannel's generations.
constexpr auto kByeTime = std::chrono::seconds(2);

}  // namespace

void Engine::Shutdown() {
  BeginLeave();
  FinishLeave();
}

void Engine::BeginLeave() {
  absl::Status submitted;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (leave_.begun) return;
    leave_.begun = true;
    submitted = BeginLeaveLocked();
  }
  if (!submitted.ok()) {
    if (!absl::IsAborted(submitted)) EndUnleft(submitted);
    return;
  }
  world_->waiter().Ring();
}

absl::Status Engine::BeginLeaveLocked() {
  leave_.request.name = kLeaveName;
  leave_.request.signature.kind = RequestKind::kLeave;
  leave_.submitted = SubmitLocked(&leave_.request, false);
  leaving_ = leave_.submitted.ok();
  // What this rank has marked directly stays marked.
  if (world_->direct() != nullptr) world_->direct()->Leave(rounds_ + 1);
  if (leaving_) pairs_.SetAway(PairWord::kLeft);
  if (leaving_) NoteLeftLocked();
  return leave_.submitted;
}

// What goes wrong ends the epoch: the wait says so.
void Engine::NoteLeftLocked() {
  try {
    (void)world_->board().NoteLeft(OwedLocked()).ok();
  } catch (const std::bad_alloc& error) {
    world_->board().AbortThrown(error, {});
  }
}

void Engine::FinishLeave() {
  std::lock_guard<std::mutex> finish(finish_mutex_);
  if (has_left_) return;
  has_left_ = true;
  const absl::Status left = leave_.submitted.ok() ? Wait(&leave_.request) : leave_.submitted;
  if (left.ok() && world_->leader() != nullptr) SayBye();
  // No other thread may be about to finish what ends here.
  std::unique_lock<std::mutex> lock(mutex_);
  AwaitRole(&lock);
  {
    const Role role(this, &lock);
    const absl::Status broken = world_->waiter().Check();
    if (broken.ok()) EndAll();
    if (!broken.ok()) Break(broken);  // a leader's peers on other hosts may not know yet
  }
  changed_.wait(lock, [this] { return telling_ == 0; });
  lock.unlock();
  OfferRole(waiting_.load(), true);
}

// A rank that cannot leave with the others must not let them wait for it, nor its own threads.
void Engine::EndUnleft(const absl::Status& why) {
  const int rank = world_->board().GlobalRank(world_->rank());
  const std::string reason = absl::IsFailedPrecondition(why)
                                 ? "before its join has returned"
                                 : "and cannot leave in order: " + std::string(why.message());
  const std::string text = "rank " + std::to_string(rank) + " has called shutdown " + reason;
  (void)world_->board().Abort({text.c_str(), rank}).ok();  // every wait says it
}

// Whoever has it gives it up for one that waits, or when its work ends; all work ends.
void Engine::AwaitRole(std::unique_lock<std::mutex>* lock) {
  waiting_.fetch_add(1);
  world_->waiter().Ring();  // the engine thread may sleep as executor
  changed_.wait(*lock, [this] { return !executing_; });
  waiting_.fetch_sub(1);
}

// The last decision must reach the other hosts before this rank's transport goes.
void Engine::SayBye() {
  Leader& leader = *world_->leader();
  const auto end = std::chrono::steady_clock::now() + kByeTime;
  std::unique_lock<std::mutex> lock(mutex_);
  AwaitRole(&lock);
  {
    const Role role(this, &lock);
    (void)leader.SayBye().ok();
    while (std::chrono::steady_clock::now() < end && world_->waiter().Check().ok()) {
      world_->transport()->Progress();
      const absl::StatusOr<bool> stepped = leader.Step();
      const absl::StatusOr<bool> unsent = leader.HasUnsent();
      if (!stepped.ok() || !unsent.ok()) break;
      if (!*unsent && (!leader.is_root() || leader.HeardAllByes())) break;
    }
  }
  lock.unlock();
  OfferRole(waiting_.load(), true);
}

}  // namespace hvd
