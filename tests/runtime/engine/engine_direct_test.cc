// SPDX-License-Identifier: Apache-2.0
// The ways past the board (direct marks, stages), and the way back to it where ranks' calls differ.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "tests/runtime/engine/engine_world.h"

namespace hvd::rt {
namespace {

using test::FillSum;
using test::Problems;
using test::RunWorld;
using test::Sum;

// Through a rank's stage when its call is the only one; else by the board, for all of them.
TEST_CASE(
    "medium tensors in private memory: in place or not, alone or beside others, by any size") {
  CHECK(RunWorld({{"a", 3}}, [](Engine& engine, Problems& problems) {
          const int rank = engine.world().rank();
          for (int i = 0; i < 60; ++i) {
            const size_t count = 1100 + static_cast<size_t>(i) * 4999;
            std::vector<float> in(count, rank + 1.0f), out(count, -1.0f), beside(2000, 1.0f);
            for (size_t at = 0; at < count; ++at) in[at] += static_cast<float>(at % 7);
            const std::vector<float> given = in;
            Request other;
            FillSum(&other, "beside", &beside);
            const bool is_busy = i % 3 == rank;  // this rank then cannot stage
            if (is_busy) problems.Expect(engine.Submit(&other).ok(), "submit");
            Request request;
            FillSum(&request, "x", &in);
            request.signature.op = HVD_AVERAGE;
            request.signature.prescale = 2.0;
            if (i % 2 == 1) request.buffers.output = out.data();
            const absl::Status status = engine.Run(&request);
            problems.Expect(status.ok(), status.ToString());
            if (!is_busy) problems.Expect(engine.Run(&other).ok(), "beside");
            if (is_busy) problems.Expect(engine.Wait(&other).ok(), "beside");
            const std::vector<float>& got = i % 2 == 1 ? out : in;
            for (size_t at = 0; at < count; ++at) {
              if (got[at] == 4.0f + 2.0f * static_cast<float>(at % 7)) continue;
              return problems.Expect(false, "wrong at " + std::to_string(at));
            }
            problems.Expect(i % 2 == 0 || in == given, "the input has changed");
            problems.Expect(beside.back() == 3.0f, "beside: wrong sum");
          }
        }) == "");
}

TEST_CASE("small on some ranks and large on others is a mismatch like any other") {
  CHECK(RunWorld({{"a", 3}}, [](Engine& engine, Problems& problems) {
          for (const size_t large : {1025u, 100000u}) {
            std::vector<float> x(engine.world().rank() == 1 ? large : 10, 1.0f);
            const absl::Status status = Sum(engine, "x", &x);
            problems.Expect(absl::IsInvalidArgument(status), status.ToString());
            problems.Expect(status.message().find("rank 1") != std::string::npos,
                            std::string(status.message()));
            std::vector<float> y(10, 1.0f), z(large, 1.0f);
            problems.Expect(Sum(engine, "x", &y).ok() && y[9] == 3.0f, "small afterwards");
            problems.Expect(Sum(engine, "x", &z).ok() && z[9] == 3.0f, "large afterwards");
          }
        }) == "");
}

// A reduce-scatter of `rows` rows of two floats, or an alltoall of all of them to rank 0.
absl::Status Scatter(Engine& engine, RequestKind kind, int64_t rows, float* first) {
  const std::vector<float> data(static_cast<size_t>(rows) * 2, engine.world().rank() + 1.0f);
  Request request;
  request.name = "x";
  request.signature.kind = kind;
  request.signature.dtype = HVD_FLOAT32;
  request.signature.op = kind == RequestKind::kReduceScatter ? HVD_SUM : 0;
  request.signature.ndim = 2;
  request.signature.shape = {rows, 2};
  request.buffers.input = data.data();
  if (kind == RequestKind::kAlltoall) {
    request.buffers.splits.assign(engine.world().topology().size(), 0);
    request.buffers.splits[0] = rows;
  }
  const absl::Status status = engine.Run(&request);
  *first = 0;
  if (status.ok() && request.result.shape.at(0) > 0) {
    *first = static_cast<const float*>(request.result.owned)[0];
  }
  return status;
}

TEST_CASE("small reduce-scatters: what differs is told, and other sizes work before and after") {
  CHECK(RunWorld({{"a", 3}}, [](Engine& engine, Problems& problems) {
          const int rank = engine.world().rank();
          for (const int64_t rows : {1, 2, 5, 512, 513, 40000, 7}) {
            float first = 0;
            problems.Expect(Scatter(engine, RequestKind::kReduceScatter, rows, &first).ok(), "sum");
            problems.Expect(first == (rank < rows ? 6.0f : 0.0f), "wrong sum");
            const absl::Status status =
                Scatter(engine, RequestKind::kReduceScatter, rank == 2 ? rows + 1 : rows, &first);
            const std::string text(status.message());
            problems.Expect(absl::IsInvalidArgument(status), "no mismatch");
            problems.Expect(
                text.find("rank 2") != std::string::npos &&
                    text.find("[" + std::to_string(rows + 1) + ",2]") != std::string::npos,
                text);
          }
        }) == "");
}

TEST_CASE("an alltoall that is small on some ranks only goes by the board on all") {
  CHECK(RunWorld({{"a", 3}}, [](Engine& engine, Problems& problems) {
          const int rank = engine.world().rank();
          for (const int64_t rows : {0, 1, 100, 512, 30000, 3}) {
            float first = 0;
            const absl::Status status =
                Scatter(engine, RequestKind::kAlltoall, rank == 1 ? rows : 2, &first);
            problems.Expect(status.ok(), status.ToString());
            problems.Expect(first == (rank == 0 ? 1.0f : 0.0f), "wrong rows");
          }
        }) == "");
}

TEST_CASE("a small reduce-scatter that a joined rank does not bring is an error that names it") {
  CHECK(RunWorld({{"a", 3}}, [](Engine& engine, Problems& problems) {
          for (int round = 0; round < 3; ++round) {
            if (engine.world().rank() != 1) {
              for (const auto kind : {RequestKind::kReduceScatter, RequestKind::kAlltoall}) {
                float first = 0;
                const absl::Status status = Scatter(engine, kind, 6, &first);
                problems.Expect(absl::IsInvalidArgument(status), status.ToString());
                problems.Expect(status.message().find("rank 1") != std::string::npos,
                                std::string(status.message()));
              }
            }
            Request join;
            join.signature.kind = RequestKind::kJoin;
            join.name = "\x03join";
            problems.Expect(engine.Run(&join).ok(), "join");
            float first = 0;
            problems.Expect(
                Scatter(engine, RequestKind::kReduceScatter, 6, &first).ok() && first == 6.0f,
                "after the join");
          }
        }) == "");
}

// Rank 0 has joined on one thread, and rank 1 asks for x after that.
TEST_CASE("a rank that has joined marks nothing on another thread, small as it may be") {
  std::atomic<bool> has_joined{false}, has_asked{false}, has_tried{false};
  CHECK(RunWorld({{"a", 3}}, [&](Engine& engine, Problems& problems) {
          Request join;
          join.signature.kind = RequestKind::kJoin;
          join.name = "\x03join";
          std::vector<float> x(10, 1.0f);
          if (engine.world().rank() == 0) {
            problems.Expect(engine.Submit(&join).ok(), "join");
            has_joined.store(true);
            while (!has_asked.load()) std::this_thread::yield();
            Request request;
            FillSum(&request, "x", &x);
            const absl::Status status = engine.Submit(&request);
            problems.Expect(absl::IsFailedPrecondition(status), status.ToString());
            problems.Expect(status.message().find("this rank has joined") != std::string::npos,
                            std::string(status.message()));
            has_tried.store(true);
            if (status.ok()) problems.Expect(engine.Wait(&request).ok(), "x");
            problems.Expect(engine.Wait(&join).ok(), "join");
            return;
          }
          const bool asks_first = engine.world().rank() == 1;
          while (!(asks_first ? has_joined : has_tried).load()) std::this_thread::yield();
          Request request;
          FillSum(&request, "x", &x);
          absl::Status status = engine.Submit(&request);
          if (asks_first) has_asked.store(true);
          if (status.ok()) status = engine.Wait(&request);
          problems.Expect(status.ok() && x[9] == 2.0f, "x is " + std::to_string(x[9]));
          problems.Expect(engine.Run(&join).ok(), "join");
        }) == "");
}

// How often the name has been marked directly on this rank.
uint64_t DirectMarks(Engine& engine, const std::string& name) {
  Direct& direct = *engine.world().direct();
  const DirectTicket latest = direct.Latest(direct.numbers().Number(name), 0);
  return latest.round == 0 ? latest.count + 1 : 0;
}

TEST_CASE("a large private tensor is marked directly once, until it can go directly") {
  CHECK(RunWorld({{"a", 2}}, [](Engine& engine, Problems& problems) {
          const auto sum = [&](size_t elements) {
            std::vector<float> x(elements, 1.0f);
            const absl::Status status = Sum(engine, "x", &x);
            problems.Expect(status.ok() && x.back() == 2.0f, status.ToString());
          };
          for (int i = 0; i < 5; ++i) sum(1 << 20);
          problems.Expect(DirectMarks(engine, "x") == 1, "large ones are marked");
          sum(10);  // by the board, which tells that it need not
          sum(10);
          sum(1 << 20);
          problems.Expect(DirectMarks(engine, "x") == 3, "small ones are not marked again");
          sum(1 << 20);
          problems.Expect(DirectMarks(engine, "x") == 3, "a large one is marked again");
        }) == "");
}

TEST_CASE("ranks that join in between find the same way of a large tensor's next use") {
  CHECK(RunWorld({{"a", 3}}, [](Engine& engine, Problems& problems) {
          const int rank = engine.world().rank();
          for (int round = 0; round < 20; ++round) {
            for (int i = 0; i < 1 + rank; ++i) {
              std::vector<float> x(i % 2 == 0 ? 400000 : 10, 1.0f);
              const absl::Status status = Sum(engine, "x", &x);
              problems.Expect(status.ok(), status.ToString());
            }
            Request join;
            join.name = "\x01join";
            join.signature.kind = RequestKind::kJoin;
            problems.Expect(engine.Run(&join).ok(), "join");
          }
        }) == "");
}

}  // namespace
}  // namespace hvd::rt
