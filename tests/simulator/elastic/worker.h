// SPDX-License-Identifier: Apache-2.0
// A worker: the user's program and the libhvd in its process. Decisions of libhvd are production
// code where they are pure (CommitBook, the agreement's words, rt::StateLayout, the cells of a
// state file); Process, Session and State are followed step by step, since they wait in sockets and
// shared memory.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/connections/connections.h"
#include "hvd/v1/link_b.pb.h"
#include "proto/page/host_page.h"
#include "runtime/state/commit_book.h"
#include "runtime/state/state_layout.h"
#include "tests/simulator/elastic/checker.h"
#include "tests/simulator/elastic/course.h"
#include "tests/simulator/elastic/mapping.h"
#include "tests/simulator/elastic/model.h"
#include "tests/simulator/elastic/scheduler.h"
#include "tests/simulator/elastic/wire.h"

namespace hvd::elastic_simulator {

class Host;
struct World;

// A message of hvdd's, as it comes out of the socket.
struct FromDaemon {
  v1::ToWorker message;
  daemon::SlotMessage raw;
};

class Worker : public Actor {
 public:
  struct Seat {
    uint64_t member = 0;
    int slot = 0;
    int share = 0;
  };
  Worker(World* world, Host* host, const Seat& seat);
  ~Worker() override;

  const Seat& seat() const { return seat_; }
  Host* host() const { return host_; }
  bool lives() const { return lives_; }
  Place place() const { return place_; }
  // The epoch that it is in, or waits for; 0: none.
  uint64_t begun() const { return begun_; }

  // It begins after so long.
  void Start(double after);
  // `status` as wait4 gives it.
  void Die(int status);
  // It leaves its epoch in good order before.
  void LeaveAndDie(int status);
  // Its host may be cut off from another of its epoch.
  void NoticeCut();
  // It ends by SIGTERM, soon.
  void Term();

  bool Ready() const override;
  void Step() override;

  // Its link to hvdd.
  std::deque<v1::ToDaemon> outbox;
  bool eof_sent = false;     // its end comes behind what is in the outbox
  bool link_broken = false;  // although it lives
  void Receive(FromDaemon message) { inbox_.push_back(std::move(message)); }

 private:
  enum class Code { kOk, kAborted, kUpdated, kRemoved, kOver, kDiffers, kBug };
  enum class Got { kWanted, kBroken, kAgain, kRemoved, kOver };

  // An epoch that this process is in.
  struct Epoch {
    v1::EpochStart start;
    Topology topology;
    int rank = 0, local_rank = 0, local_size = 1;
    bool needs_state = false;
    std::vector<int> hosts;  // their numbers
    Mapping page_memory;
    HostPage* page = nullptr;
    std::array<Mapping, 2> files;
    int collectives = 0;  // of all ranks
    int brought = 0;      // of the root and the needy
    int agreements = 0;
    bool has_gone_back = false;
    bool stale_change = false;
    bool runs = false;  // its ranks have met
  };
  // Where a course waits, until `ready_`.
  struct Pause {
    Worker* worker;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle) noexcept { worker->resume_ = handle; }
    void await_resume() const noexcept {}
  };
  Pause At(Place place);
  Pause Until(std::function<bool()> ready);
  Pause Sleep(double seconds);

  // The program (worker.cc).
  Course<int> Run();
  Course<Code> Train();
  Course<Code> CommitAnew();
  Code CodeOfStep() const;
  int FailStart();

  // Epochs (worker_epochs.cc).
  Course<Code> Init();
  Course<Code> TryInit();
  Course<Got> Await(v1::ToWorker::KindCase wanted);
  Course<bool> Meet();
  int CutOff() const;
  void EndEpoch(const AbortCause& cause);
  void TakeStart(FromDaemon start);
  void Leave();
  void LeaveUnbegun();
  bool Stale(const v1::ToWorker& message) const;
  Got TakeRefusal(const v1::Refused& refused);
  void Send(v1::ToDaemon message);

  // State (worker_state.cc).
  Course<Code> Sync();
  Course<Code> Bring(bool before_failed);
  Course<Code> Commit(rt::CommitBy by, bool failed);
  Course<Code> Write(rt::CommitBy by);
  Course<Code> Agree(rt::CommitBy by, rt::AgreementSide side, uint64_t number);
  Code Hear(rt::CommitBy by, const rt::Agreement& agreement, uint64_t number);
  void LearnSteps();
  void EndCell(rt::CommitBy by);
  bool Restore(uint64_t number);
  void TakeBack(uint64_t number);

  // Collectives (worker.cc). Empty: the epoch is broken.
  struct Collective {
    int set = 0;
    std::vector<int> ranks;  // of the set; empty: all
    std::string name;
    Words words;
  };
  Course<std::optional<Gifts>> Together(Collective what);
  bool SomeoneHasLeft() const;
  void AbortForLeaver();
  bool Aborted() const { return epoch_->page->aborted.load() != 0; }
  elastic_simulator::Part PartNow() const;
  StateHead* HeadOf(uint64_t number);
  std::string Describe() const;

  World* const world_;
  Host* const host_;
  const Seat seat_;
  bool lives_ = true;
  bool started_ = false;
  Place place_ = Place::kStarted;
  std::coroutine_handle<> resume_;
  std::function<bool()> ready_;
  std::optional<Course<int>> course_;
  std::deque<FromDaemon> inbox_;

  // Session's.
  uint64_t begun_ = 0;
  uint64_t over_ = 0;
  std::unique_ptr<Epoch> epoch_;

  // State's and StateHome's.
  rt::CommitBook book_;
  bool is_new_ = true;
  bool was_changed_ = false;
  Model model_;
};

}  // namespace hvd::elastic_simulator
