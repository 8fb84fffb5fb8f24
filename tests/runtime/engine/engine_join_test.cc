// SPDX-License-Identifier: Apache-2.0
// Ranks that join while they have something pending: that goes on, and nobody waits for it.
#include <atomic>
#include <catch2/catch.hpp>
#include <deque>
#include <thread>

#include "tests/runtime/engine/engine_world.h"

namespace hvd::rt {
namespace {

using test::FillSum;
using test::Problems;
using test::RunWorld;
using test::Sum;

const std::vector<std::vector<HostShape>> kWorlds = {
    {{"a", 1}},
    {{"a", 2}},
    {{"a", 4}},
    {{"a", 1}, {"b", 1}},
    {{"a", 2}, {"b", 1}, {"c", 1}},
    {{"a", 2, {0, 3}}, {"b", 1, {1}}, {"c", 1, {2}}}};

absl::Status Join(Engine& engine) {
  Request join;
  join.name = "\x03join";
  join.signature.kind = RequestKind::kJoin;
  return engine.Run(&join);
}

// A sum of whole numbers: any order of summation gives the same.
struct PendingSum {
  std::vector<float> data;
  Request request;
};

class Sums {
 public:
  Sums(Engine& engine, Problems& problems) : engine_(engine), problems_(problems) {}
  void Submit(const std::string& name, size_t count, float value) {
    PendingSum& sum = sums_.emplace_back();
    sum.data.assign(count, value);
    FillSum(&sum.request, name, &sum.data);
    problems_.Expect(engine_.Submit(&sum.request).ok(), "submit " + name);
  }
  // Also: it is done already.
  void ExpectDone(size_t i, float wanted) {
    PendingSum& sum = sums_.at(i);
    problems_.Expect(sum.request.done.load(), "not done: " + sum.request.name);
    const absl::Status status = engine_.Wait(&sum.request);
    problems_.Expect(status.ok(), status.ToString());
    problems_.Expect(sum.data.front() == wanted && sum.data.back() == wanted,
                     sum.request.name + " is " + std::to_string(sum.data.back()) + ", not " +
                         std::to_string(wanted));
  }
  absl::Status Wait(size_t i) { return engine_.Wait(&sums_.at(i).request); }

 private:
  Engine& engine_;
  Problems& problems_;
  std::deque<PendingSum> sums_;
};

TEST_CASE("each rank has something else pending and joins: all is done, with neutral values") {
  for (const auto& hosts : kWorlds) {
    CAPTURE(hosts.size(), hosts[0].ranks);
    CHECK(RunWorld(hosts, [](Engine& engine, Problems& problems) {
            const int rank = engine.world().rank();
            for (int round = 0; round < 5; ++round) {
              Sums sums(engine, problems);
              for (const size_t count : {1u, 1000u, 2000u, 200000u}) {
                const std::string name = std::to_string(rank) + " of " + std::to_string(count);
                sums.Submit(name, count, rank + 1.0f);
              }
              const absl::Status joined = Join(engine);
              problems.Expect(joined.ok(), joined.ToString());
              for (size_t i = 0; i < 4; ++i) sums.ExpectDone(i, rank + 1.0f);
              std::vector<float> x(10, 1.0f);
              problems.Expect(Sum(engine, "0 of 1000", &x).ok(), "after the join");
              problems.Expect(x[9] == engine.world().topology().size(), "wrong after the join");
            }
          }) == "");
  }
}

// The others ask for something else first, and wait for it.
TEST_CASE("what a rank has pending when it joins holds nothing else up, and counts once") {
  for (const auto& hosts : kWorlds) {
    CAPTURE(hosts.size(), hosts[0].ranks);
    CHECK(RunWorld(hosts, [](Engine& engine, Problems& problems) {
            const int others = engine.world().topology().size() - 1;
            for (int round = 0; round < 20; ++round) {
              Sums sums(engine, problems);
              for (const size_t count : {10u, 3000u}) {
                const std::string name = "pending " + std::to_string(count);
                if (engine.world().rank() == 0) {
                  sums.Submit(name, count, 7.0f);
                  continue;
                }
                for (const float wanted : {1.0f * others, others + 7.0f, 1.0f * others}) {
                  std::vector<float> x(count, 1.0f);
                  const bool is_pending = wanted > static_cast<float>(others);
                  const absl::Status status = Sum(engine, is_pending ? name : "other", &x);
                  problems.Expect(status.ok() && x.back() == wanted,
                                  status.ToString() + ", sum " + std::to_string(x.back()));
                }
                for (const size_t more : {0u, 1u, 2u}) {  // another request under the name
                  std::vector<float> again(count + more, 1.0f);
                  problems.Expect(Sum(engine, name, &again).ok() && again[9] == others, "again");
                }
              }
              problems.Expect(Join(engine).ok(), "join");
              if (engine.world().rank() != 0) continue;
              for (size_t i = 0; i < 2; ++i) sums.ExpectDone(i, others + 7.0f);
            }
          }) == "");
  }
}

TEST_CASE("what is pending at a join is averaged, a mismatch, or needs every rank, as ever") {
  for (const auto& hosts : {kWorlds[2], kWorlds[4]}) {
    CHECK(RunWorld(hosts, [](Engine& engine, Problems& problems) {
            const int rank = engine.world().rank();
            std::vector<float> x(10, 8.0f), y(10 + rank, 1.0f), z(10, 1.0f);
            Request average, mismatch, broadcast;
            FillSum(&average, "average", &x);
            average.signature.op = HVD_AVERAGE;
            FillSum(&mismatch, "mismatch", &y);
            FillSum(&broadcast, "broadcast", &z);
            broadcast.signature.kind = RequestKind::kBroadcast;
            broadcast.signature.op = 0;
            const bool brings = rank == 1, brings_other = rank > 0;
            if (brings) problems.Expect(engine.Submit(&average).ok(), "submit");
            if (brings_other) problems.Expect(engine.Submit(&mismatch).ok(), "submit");
            if (brings) problems.Expect(engine.Submit(&broadcast).ok(), "submit");
            problems.Expect(Join(engine).ok(), "join");
            if (brings) problems.Expect(engine.Wait(&average).ok() && x[9] == 2.0f, "average");
            if (brings_other) {
              const std::string text(engine.Wait(&mismatch).message());
              problems.Expect(text.find("'mismatch': ranks ask for different") != text.npos, text);
            }
            if (brings) {
              const std::string text(engine.Wait(&broadcast).message());
              problems.Expect(text.find("3 of 4 ranks have joined") != text.npos, text);
            }
          }) == "");
  }
}

// Rank 0 has more unnamed calls pending than there are turns; rank 1 fewer, and on one host it asks
// for something else first.
TEST_CASE("unnamed calls that wait for their turn count, too") {
  for (const auto& hosts : {kWorlds[1], kWorlds[3]}) {
    for (const size_t count : {5u, 2000u}) {
      CAPTURE(hosts.size(), count);
      CHECK(RunWorld(hosts, [&](Engine& engine, Problems& problems) {
              constexpr size_t kCalls = 3000, kFewer = 2100;
              for (int round = 0; round < 2; ++round) {
                const bool first = engine.world().rank() == 0;
                if (!first && hosts.size() == 1) {
                  std::vector<float> x(count, 3.0f);
                  problems.Expect(Sum(engine, "other", &x).ok() && x.back() == 3.0f, "other");
                }
                Sums sums(engine, problems);
                const size_t calls = first ? kCalls : kFewer;
                for (size_t i = 0; i < calls; ++i) sums.Submit("", count, static_cast<float>(i));
                problems.Expect(Join(engine).ok(), "join");
                for (size_t i = 0; i < calls; ++i) {
                  sums.ExpectDone(i, (i < kFewer ? 2.0f : 1.0f) * static_cast<float>(i));
                }
                std::vector<float> x(10, 1.0f);
                problems.Expect(Sum(engine, "", &x).ok() && x[9] == 2.0f, "unnamed afterwards");
              }
            }) == "");
    }
  }
}

// Sums a group of three tensors, the second without elements; of any number of bytes.
absl::Status SumGroup(Engine& engine, size_t count, std::vector<float>* data) {
  data->assign(2 * count, 1.0f);
  Request request;
  FillSum(&request, "group", data);
  request.signature.group_count = request.signature.ndim = 3;
  request.signature.shape = {static_cast<int64_t>(count), 0, static_cast<int64_t>(count)};
  for (const size_t at : {size_t{0}, count, count}) {
    RequestPart part;
    part.input = part.output = data->data() + at;
    part.shape = {request.buffers.parts.size() == 1 ? 0 : static_cast<int64_t>(count)};
    part.position = static_cast<int>(request.buffers.parts.size());
    request.buffers.parts.push_back(part);
  }
  return engine.Run(&request);
}

TEST_CASE("a rank that has joined takes part in groups, whatever ways the hosts have") {
  for (const auto& hosts : kWorlds) {
    const auto others = static_cast<float>(Topology(hosts).size() - 1);
    CAPTURE(hosts.size(), hosts[0].ranks);
    CHECK(RunWorld(hosts, [&](Engine& engine, Problems& problems) {
            for (const size_t count : {10u, 3000u, 400000u}) {
              std::vector<float> x;
              if (engine.world().rank() != 0) {
                const absl::Status status = SumGroup(engine, count, &x);
                problems.Expect(status.ok() && x.front() == others && x.back() == others,
                                status.ToString());
              }
              problems.Expect(Join(engine).ok(), "join");
            }
          }) == "");
  }
}

unsigned Draw(int round, int rank, int name) {
  unsigned seed = static_cast<unsigned>(round * 10007 + rank * 101 + name + 1);
  for (int i = 0; i < 3; ++i) (void)rand_r(&seed);
  return static_cast<unsigned>(rand_r(&seed)) / 7;
}

// Every rank has some of the names pending. Ranks that join late then sum all of them, twice.
void JoinAtRandom(Engine& engine, Problems& problems, int round) {
  constexpr int kNames = 12;
  const int rank = engine.world().rank(), size = engine.world().topology().size();
  const auto is_late = [round](int r) { return Draw(round, r, kNames) % 2 == 0; };
  const auto has = [&](int r, int name) { return !is_late(r) && Draw(round, r, name) % 2 == 0; };
  Sums sums(engine, problems);
  std::vector<float> wanted;
  for (int i = 0; i < kNames; ++i) {
    const int name = (i + rank * 5) % kNames;
    float early = 0, late = 0;
    for (int r = 0; r < size; ++r) (is_late(r) ? late : early) += is_late(r) || has(r, name);
    const std::string text = "t" + std::to_string(name);
    const size_t count = name % 3 == 0 ? 3000 : 10;
    if (has(rank, name)) sums.Submit(text, count, 1.0f), wanted.push_back(early + late);
  }
  for (int i = 0; is_late(rank) && i < 2 * kNames; ++i) {
    const int name = i / 2;
    float sum = 0;
    for (int r = 0; r < size; ++r) sum += is_late(r) || (i % 2 == 0 && has(r, name)) ? 1.0f : 0.0f;
    std::vector<float> x(name % 3 == 0 ? 3000 : 10, 1.0f);
    const absl::Status status = Sum(engine, "t" + std::to_string(name), &x);
    problems.Expect(status.ok() && x.back() == sum, status.ToString() + std::to_string(x.back()));
  }
  const absl::Status joined = Join(engine);
  problems.Expect(joined.ok(), joined.ToString());
  for (size_t i = 0; i < wanted.size(); ++i) sums.ExpectDone(i, wanted[i]);
}

TEST_CASE("some of many names are pending on each rank that joins, in any order") {
  for (const auto& hosts : kWorlds) {
    CAPTURE(hosts.size(), hosts[0].ranks);
    CHECK(RunWorld(hosts, [](Engine& engine, Problems& problems) {
            for (int round = 0; round < 40; ++round) JoinAtRandom(engine, problems, round);
          }) == "");
  }
}

// Blocked in a tensor that goes through its stage.
TEST_CASE("a rank joins on one thread while another is inside a call") {
  for (const size_t count : {10u, 5000u}) {
    std::atomic<int> joined{0};
    CHECK(RunWorld({{"a", 2}}, [&](Engine& engine, Problems& problems) {
            const bool first = engine.world().rank() == 0;
            std::vector<float> x(count, 1.0f);
            std::thread inside;
            if (first) {
              inside = std::thread([&] {
                problems.Expect(Sum(engine, "x", &x).ok() && x.back() == 2.0f, "inside");
              });
              while (ActivityAt(engine.world().watch()).pending.load() == 0)
                std::this_thread::yield();
              Request join, more;
              join.name = "\x03join";
              join.signature.kind = RequestKind::kJoin;
              problems.Expect(engine.Submit(&join).ok(), "join");
              for (const char* name : {"x", "y", ""}) {
                std::vector<float> data(10);
                FillSum(&more, name, &data);
                const absl::Status status = engine.Submit(&more);
                problems.Expect(absl::IsFailedPrecondition(status), status.ToString());
              }
              ++joined;
              problems.Expect(engine.Wait(&join).ok(), "join");
              inside.join();
              return;
            }
            while (joined.load() == 0) std::this_thread::yield();
            problems.Expect(Sum(engine, "x", &x).ok() && x.back() == 2.0f, "x");
            problems.Expect(Sum(engine, "x", &x).ok() && x.back() == 2.0f, "x again");
            problems.Expect(Join(engine).ok(), "join");
          }) == "");
  }
}

// On several hosts the other only leaves: this network tells nobody inside a collective of the end.
TEST_CASE("a shutdown ends a join and what was pending before it") {
  for (const auto& hosts : {kWorlds[1], kWorlds[3]}) {
    std::atomic<bool> has_joined{false};
    CHECK(RunWorld(hosts, [&](Engine& engine, Problems& problems) {
            if (engine.world().rank() == 1) {
              while (!has_joined.load()) std::this_thread::yield();
              if (hosts.size() > 1) return;
              std::vector<float> x(10, 1.0f);
              absl::Status status;
              while (status.ok()) status = Sum(engine, "other", &x);
              return problems.Expect(absl::IsAborted(status), status.ToString());
            }
            Sums sums(engine, problems);
            sums.Submit("never", 10, 1.0f);
            std::thread joining([&] {
              const absl::Status status = Join(engine);
              problems.Expect(absl::IsAborted(status), status.ToString());
            });
            while (ActivityAt(engine.world().watch()).pending.load() < 2) std::this_thread::yield();
            has_joined.store(true);
            engine.Shutdown();
            joining.join();
            problems.Expect(absl::IsAborted(sums.Wait(0)), "never");
          }) == "");
  }
}

}  // namespace
}  // namespace hvd::rt
