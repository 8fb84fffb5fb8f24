// SPDX-License-Identifier: Apache-2.0
// The sends and receives of one process set, from their submission to their end.
//
// Each side tells the other of every send and receive once, in order (PairNotice); so both know
// which belong together, whether they fit, and that the tensor may go. Nothing waits here, and
// nobody but the two ranks takes part. A rank that has joined or left answers that it is away.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "runtime/engine/epoch_world.h"
#include "runtime/engine/pairs/pair_book.h"
#include "runtime/engine/pairs/pair_link.h"
#include "runtime/engine/watch/stall.h"

namespace hvd::rt {

// A send or receive on its way; its parcel is the tensor's.
struct PairTask : Parcel {
  Request* request = nullptr;
  PairNotice notice;     // this rank's
  bool told = false;     // the notice has left this process
  bool begun = false;    // the tensor is on its way
  bool settled = false;  // nothing more comes or goes: request->status says how it ended
};

class Pairs {
 public:
  explicit Pairs(EpochWorld* world);  // borrowed

  // Any thread, one after the other: the order counts. Throws without memory; then nothing has
  // changed.
  void Submit(Request* request);
  // This rank has joined or left (kAsks: all have joined, and it is back): what it has submitted
  // before goes on.
  void SetAway(PairWord word);
  // All ranks of the set have submitted something since this one came back from a join.
  void AllAreBack() { owes_ = false; }
  // Any thread: whether there may be anything to do.
  bool active() const { return active_.load(std::memory_order_acquire); }

  // The executor's. True if something moved. An error: the ranks have lost one another.
  absl::StatusOr<bool> Step();
  // Takes the requests that have ended since, with their status.
  std::vector<Request*> TakeEnded();
  bool has_ended() const { return !ended_.empty(); }
  // Tensors are on their way: both sides see to it that they arrive.
  bool HasParcels() const;
  // Returns the requests that are not over.
  std::vector<PendingRequest> Pending();
  // All that are pending, for whoever ends them otherwise. Needs no memory.
  void TakeAll(absl::FunctionRef<void(Request*)> end);

 private:
  struct News {
    Request* request = nullptr;
    uint32_t round = 0;
  };
  struct Peer {
    std::unique_ptr<PairLink> link;
    PairBook book;
    std::map<PairTask*, std::unique_ptr<PairTask>> tasks;
    // Notices that are still to be sent, and those that were, but have not left; null: an answer.
    struct Saying {
      PairNotice notice;
      PairTask* task = nullptr;
    };
    std::deque<Saying> to_say;
    std::deque<PairTask*> said;
    uint64_t gone = 0;  // of the link's that were taken out of `said`
    uint32_t parcels = 0;

    bool idle() const { return tasks.empty() && to_say.empty() && said.empty(); }
  };

  // Whether what others ask for is answered that this rank has not asked for.
  bool listens() const { return away_ != PairWord::kAsks || owes_; }
  void TakeNews();
  absl::StatusOr<Peer*> PeerAt(int rank);
  absl::Status Listen();
  absl::Status Begin(const News& news);
  void AnswerAway(Peer* peer);
  absl::StatusOr<bool> StepPeer(int rank, Peer* peer);
  absl::StatusOr<bool> Say(Peer* peer);
  absl::StatusOr<bool> Hear(int rank, Peer* peer);
  absl::Status Meet(int rank, Peer* peer, PairTask* task, const PairNotice& theirs);
  void Settle(Peer* peer, PairTask* task);

  EpochWorld* const world_;
  std::atomic<bool> active_{false};
  Mutex news_mutex_;
  std::vector<News> news_ ABSL_GUARDED_BY(news_mutex_);
  PairWord news_away_ ABSL_GUARDED_BY(news_mutex_) = PairWord::kAsks;
  uint32_t news_round_ ABSL_GUARDED_BY(news_mutex_) = 0;  // joins that are over
  // The executor's.
  std::deque<News> begun_;  // taken out of news_, not looked at yet
  PairWord away_ = PairWord::kAsks;
  uint32_t round_ = 0;
  // This rank is back from a join, but somebody else's may still wait for what he has asked this
  // rank for before: it came too late to be answered while this rank was away.
  bool owes_ = false;
  std::map<int, Peer> peers_;  // by their rank in the set
  std::vector<Request*> ended_;
};

}  // namespace hvd::rt
