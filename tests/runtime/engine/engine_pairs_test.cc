// SPDX-License-Identifier: Apache-2.0
// Sends and receives between two ranks, inside a host and between hosts, beside everything else.
#include <barrier>
#include <catch2/catch.hpp>
#include <deque>

#include "tests/runtime/engine/engine_world.h"

namespace hvd::rt {
namespace {

using test::Problems;
using test::RunWorld;
using test::RunWorlds;
using test::Sum;

const std::vector<std::vector<HostShape>> kWorlds = {{{"a", 2}},
                                                     {{"a", 5}},
                                                     {{"a", 1}, {"b", 1}},
                                                     {{"a", 2}, {"b", 2}},
                                                     {{"a", 2, {0, 2}}, {"b", 2, {1, 3}}}};
// Inside a notice, beside it, in several pieces.
const std::vector<size_t> kSizes = {0, 1, 64, 65, 1000, 200000};

struct Task {
  Task(RequestKind kind, int peer, int64_t tag, size_t count, float value) : data(count, value) {
    request.signature.kind = kind;
    request.signature.dtype = HVD_FLOAT32;
    request.signature.ndim = 1;
    request.signature.shape[0] = static_cast<int64_t>(count);
    request.peer = peer;
    request.tag = tag;
    request.buffers.input = request.buffers.output = data.data();
  }
  bool Holds(float value) const {
    return std::all_of(data.begin(), data.end(), [&](float each) { return each == value; });
  }
  std::vector<float> data;
  Request request;
};

// The tasks that a rank has under way.
class Tasks {
 public:
  Tasks(Engine& engine, Problems& problems) : engine_(engine), problems_(problems) {}
  Task& Submit(RequestKind kind, int peer, int64_t tag, size_t count, float value) {
    Task& task = tasks_.emplace_back(kind, peer, tag, count, value);
    const absl::Status status = engine_.Submit(&task.request);
    problems_.Expect(status.ok(), status.ToString());
    return task;
  }
  void Await() {
    for (Task& task : tasks_) {
      const absl::Status status = engine_.Wait(&task.request);
      problems_.Expect(status.ok(), status.ToString());
    }
  }

 private:
  Engine& engine_;
  Problems& problems_;
  std::deque<Task> tasks_;
};

float ValueOf(int from, int to, size_t size, int64_t tag) {
  return static_cast<float>(from * 100 + to) + static_cast<float>(size % 97) * 0.5f +
         static_cast<float>(tag) * 1000;
}

TEST_CASE("all send to all before they receive, tags in opposite orders") {
  for (const auto& hosts : kWorlds) {
    CAPTURE(hosts.size(), hosts[0].ranks);
    CHECK(
        RunWorld(hosts, [](Engine& engine, Problems& problems) {
          const int rank = engine.world().rank(), size = engine.world().topology().size();
          Tasks tasks(engine, problems);
          std::deque<std::pair<Task*, float>> wanted;
          for (int peer = 0; peer < size; ++peer) {
            if (peer == rank) continue;
            for (const size_t count : kSizes) {
              for (int64_t tag = 0; tag < 3; ++tag) {
                tasks.Submit(RequestKind::kSend, peer, tag, count, ValueOf(rank, peer, count, tag));
              }
            }
          }
          std::vector<float> between(10, 1.0f);
          problems.Expect(Sum(engine, "between", &between).ok(), "an allreduce in between");
          for (int peer = size - 1; peer >= 0; --peer) {
            if (peer == rank) continue;
            for (int64_t tag = 2; tag >= 0; --tag) {
              for (const size_t count : kSizes) {
                Task& task = tasks.Submit(RequestKind::kReceive, peer, tag, count, -1);
                wanted.emplace_back(&task, ValueOf(peer, rank, count, tag));
              }
            }
          }
          tasks.Await();
          for (const auto& [task, value] : wanted) {
            problems.Expect(task->Holds(value), "wrong from " + std::to_string(task->request.peer));
          }
        }) == "");
  }
}

TEST_CASE("a rank that only sends gets on while nobody calls anything") {
  for (const auto& hosts : kWorlds) {
    CHECK(RunWorld(hosts, [](Engine& engine, Problems& problems) {
            const int rank = engine.world().rank();
            if (rank > 1) return;
            Task task(rank == 0 ? RequestKind::kSend : RequestKind::kReceive, 1 - rank, 5, 300000,
                      rank == 0 ? 3.0f : 0.0f);
            if (rank == 0) {
              problems.Expect(engine.Submit(&task.request).ok(), "submit");
              while (!task.request.done.load()) std::this_thread::yield();
            } else {
              problems.Expect(engine.Run(&task.request).ok(), "receive");
            }
            problems.Expect(task.Holds(3.0f), "wrong");
          }) == "");
  }
}

TEST_CASE("what does not fit ends on both sides in the same words, and the next goes well") {
  for (const auto& hosts : kWorlds) {
    std::string words[2];
    CHECK(RunWorld(hosts, [&](Engine& engine, Problems& problems) {
            const int rank = engine.world().rank();
            if (rank > 1) return;
            const RequestKind kind = rank == 0 ? RequestKind::kSend : RequestKind::kReceive;
            Task wrong(kind, 1 - rank, 5, rank == 0 ? 5000 : 5001, 1);
            const absl::Status status = engine.Run(&wrong.request);
            problems.Expect(absl::IsFailedPrecondition(status), status.ToString());
            words[rank] = std::string(status.message());
            Task right(kind, 1 - rank, 5, 5000, rank == 0 ? 2.0f : 0.0f);
            problems.Expect(engine.Run(&right.request).ok(), "the next");
            problems.Expect(right.Holds(2.0f), "wrong");
          }) == "");
    CHECK(words[0] == words[1]);
    CHECK(words[0].find("rank 0 sends float32 [5000], rank 1 receives float32 [5001]") !=
          std::string::npos);
  }
}

TEST_CASE("a peer that joins or leaves without it is named; what it had submitted goes on") {
  for (const auto& hosts : kWorlds) {
    for (const bool leaves : {false, true}) {
      CHECK(RunWorld(hosts, [&](Engine& engine, Problems& problems) {
              const int rank = engine.world().rank();
              Request join;
              join.name = "\x03join";
              join.signature.kind = RequestKind::kJoin;
              if (rank == 1) {
                Task before(RequestKind::kSend, 0, 1, 100000, 4);
                problems.Expect(engine.Submit(&before.request).ok(), "submit");
                if (leaves) return engine.Shutdown();
                problems.Expect(engine.Run(&join).ok(), "join");
                problems.Expect(engine.Wait(&before.request).ok(), "before the join");
                return;
              }
              if (rank == 0) {
                Task missing(RequestKind::kReceive, 1, 2, 10, 0);
                const absl::Status status = engine.Run(&missing.request);
                const char* why = leaves ? "rank 1 has called shutdown" : "rank 1 has joined";
                problems.Expect(status.message().find(why) != std::string::npos, status.ToString());
                problems.Expect(
                    leaves ? absl::IsAborted(status) : absl::IsFailedPrecondition(status), "code");
                Task before(RequestKind::kReceive, 1, 1, 100000, 0);
                problems.Expect(engine.Run(&before.request).ok(), "what came before");
                problems.Expect(before.Holds(4), "wrong");
              }
              if (!leaves) problems.Expect(engine.Run(&join).ok(), "join");
            }) == "");
    }
  }
}

TEST_CASE("after a join all send and receive again") {
  for (const auto& hosts : kWorlds) {
    CHECK(RunWorld(hosts, [](Engine& engine, Problems& problems) {
            const int rank = engine.world().rank(), size = engine.world().topology().size();
            for (int round = 0; round < 5; ++round) {
              Request join;
              join.name = "\x03join";
              join.signature.kind = RequestKind::kJoin;
              problems.Expect(engine.Run(&join).ok(), "join");
              Tasks tasks(engine, problems);
              tasks.Submit(RequestKind::kSend, (rank + 1) % size, round, 1000, 1);
              Task& came =
                  tasks.Submit(RequestKind::kReceive, (rank + size - 1) % size, round, 1000, 0);
              tasks.Await();
              problems.Expect(came.Holds(1), "wrong");
            }
          }) == "");
  }
}

TEST_CASE("pending ones end with the shutdown of all") {
  for (const auto& hosts : kWorlds) {
    CHECK(RunWorld(hosts, [&](Engine& engine, Problems& problems) {
            const int rank = engine.world().rank(), size = engine.world().topology().size();
            Task never(RequestKind::kReceive, (rank + 1) % size, 9, 100, 0);
            problems.Expect(engine.Submit(&never.request).ok(), "submit");
            engine.Shutdown();
            const absl::Status status = engine.Wait(&never.request);
            problems.Expect(absl::IsAborted(status), status.ToString());
          }) == "");
  }
}

TEST_CASE("pending ones end with an abort, and say why") {
  FakeDaemon daemon({{"a", 2}});
  Problems problems;
  std::vector<std::thread> ranks;
  for (int r = 0; r < 2; ++r) {
    ranks.emplace_back([&, r] {
      auto session = Session::Open(daemon.link(r));
      auto world = EpochWorld::Join(session->get(), {.host_cores = 2});
      Engine engine(*std::move(world), EngineConfig());
      Task never(r == 0 ? RequestKind::kReceive : RequestKind::kSend, 1 - r, 9 + r, 100, 0);
      problems.Expect(engine.Submit(&never.request).ok(), "submit");
      if (r == 0) (void)engine.world().board().Abort({"the end", 0}).ok();
      const absl::Status status = engine.Wait(&never.request);
      problems.Expect(status == absl::AbortedError("the end"), status.ToString());
      engine.Shutdown();
    });
  }
  for (std::thread& rank : ranks) rank.join();
  CHECK(problems.text() == "");
}

// How one that has been submitted ends.
absl::Status EndOf(Pairs* pairs, Request* request, Problems* problems) {
  for (;;) {
    problems->Expect(pairs->Step().ok(), "step");
    for (const Request* ended : pairs->TakeEnded()) {
      if (ended == request) return request->result.status;
    }
  }
}

TEST_CASE(
    "what a peer asked for before a join that is over is answered behind it, and meets nothing") {
  std::barrier turn(2);
  CHECK(RunWorlds({{"a", 2}}, [&](std::unique_ptr<EpochWorld> world, Problems& problems) {
          const auto step = [&](Pairs* pairs) { problems.Expect(pairs->Step().ok(), "step"); };
          Pairs pairs(world.get());
          if (world->rank() == 0) {
            pairs.SetAway(PairWord::kJoined);
            step(&pairs);
            pairs.SetAway(PairWord::kAsks);
            step(&pairs);
            turn.arrive_and_wait();  // now the other's word leaves it
            turn.arrive_and_wait();
            Task behind(RequestKind::kSend, 1, 7, 10, 2.0f);
            pairs.Submit(&behind.request);
            problems.Expect(EndOf(&pairs, &behind.request, &problems).ok(), "the send");
          } else {
            Task before(RequestKind::kReceive, 0, 7, 10, 0.0f);
            pairs.Submit(&before.request);
            turn.arrive_and_wait();
            step(&pairs);
            turn.arrive_and_wait();
            const absl::Status refused = EndOf(&pairs, &before.request, &problems);
            problems.Expect(absl::IsFailedPrecondition(refused), refused.ToString());
            pairs.SetAway(PairWord::kJoined);
            pairs.SetAway(PairWord::kAsks);
            Task behind(RequestKind::kReceive, 0, 7, 10, 0.0f);
            pairs.Submit(&behind.request);
            problems.Expect(EndOf(&pairs, &behind.request, &problems).ok(), "the receive");
            problems.Expect(behind.Holds(2.0f), "another tensor");
          }
          turn.arrive_and_wait();
        }) == "");
}

}  // namespace
}  // namespace hvd::rt
