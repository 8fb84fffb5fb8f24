// The rendezvous of one host's ranks, epoch by epoch: who has joined, given an address, is ready,
// has left or is gone. Pure: what happened in, what to do out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hvd {

struct EpochAction {
  enum class Kind {
    kCreate,     // make the epoch's memory, `bytes` large
    kStart,      // tell `rank`: here it is
    kAddresses,  // up: all addresses of the host (HostRendezvous::addresses)
    kTable,      // tell `rank` the table that came
    kReady,      // up: all of the host are ready
    kGo,         // tell `rank`
    kLeft,       // up: `rank` has left
    kAbort,      // mark the memory aborted with `text`
    kRefuse,     // tell `rank`, which waits for an answer, `text`
    kDispose,    // nobody uses the memory any more
  };
  Kind kind;
  uint64_t epoch = 0;
  int rank = -1;  // local
  uint64_t bytes = 0;
  std::string text = {};
};
using EpochActions = std::vector<EpochAction>;

class HostRendezvous {
 public:
  // `first_rank`: global number of local rank 0, for messages.
  HostRendezvous(int local_size, int first_rank);

  EpochActions Join(int rank, uint64_t after_epoch, uint64_t bytes);
  EpochActions Address(int rank, uint64_t epoch, std::string address);
  EpochActions Ready(int rank, uint64_t epoch);
  EpochActions Leave(int rank, uint64_t epoch);
  // `rank` will take no further part in any epoch that it has not left.
  EpochActions Gone(int rank, const std::string& cause);
  // `rank` has left its aborted epoch without a word; it may come to the next.
  EpochActions Abandon(int rank);
  // A new process speaks for `rank`.
  void Back(int rank) { gone_[rank].clear(); }

  EpochActions TableCame(uint64_t epoch);
  EpochActions GoCame(uint64_t epoch);
  // 0: whichever is current. Ranks that join it later are refused with the same cause.
  EpochActions Abort(uint64_t epoch, const std::string& cause);
  // Aborts all, and every epoch to come.
  EpochActions Stop(const std::string& cause);

  const std::vector<std::string>& addresses(uint64_t epoch) { return epochs_[epoch].addresses; }
  bool in_epoch(int rank) const;
  // … that has not been aborted.
  bool in_live_epoch(int rank) const;
  // Its address has been taken, and not all are ready yet.
  bool addressed(int rank, uint64_t epoch) const;
  bool joined_ever(int rank) const { return last_epoch_[rank] != 0; }
  // The newest epoch of `rank`, 0: none; it left that one.
  uint64_t last_epoch(int rank) const { return last_epoch_[rank]; }
  bool left(int rank) const { return last_epoch_[rank] != 0 && !in_epoch(rank) && !broke_[rank]; }
  // An abort or a stop had reached `rank`: of its newest epoch, or by a refused join. Of an epoch
  // that it never asked for it knows nothing.
  bool after_abort(int rank) const;
  // It asked for an epoch, or waited for its start, and was told that there will be none.
  bool refused(int rank) const { return refused_[rank]; }

 private:
  enum class Stage { kOutside, kJoined, kAddressed, kReady, kRunning, kLeft, kGone };
  struct Epoch {
    bool created = false;
    uint64_t bytes = 0;
    int first_joiner = -1;
    std::string aborted;  // cause; empty: lives
    std::vector<Stage> stages;
    std::vector<std::string> addresses;
  };

  Epoch& At(uint64_t epoch);
  bool All(const Epoch& epoch, Stage stage) const;
  EpochActions Move(int rank, uint64_t epoch, Stage from, Stage to);
  void AbortOne(uint64_t number, const std::string& cause, EpochActions* actions);
  bool Unused(const Epoch& epoch) const;
  void DisposeIfUnused(uint64_t number, EpochActions* actions);
  uint64_t NewestOf(int rank) const { return std::max(last_epoch_[rank], refusing_[rank]); }
  void ForgetRefusing();

  const int local_size_;
  const int first_rank_;
  std::map<uint64_t, Epoch> epochs_;
  std::vector<uint64_t> last_epoch_;  // by rank
  std::vector<uint64_t> refusing_;    // by rank: the newest epoch that was over when it asked
  std::vector<std::string> gone_;     // by rank: why; empty: it is there
  std::vector<bool> broke_;           // by rank: went away inside an epoch
  std::vector<bool> refused_;         // by rank: of the newest epoch that it asked for
  std::string stopped_;
};

}  // namespace hvd
