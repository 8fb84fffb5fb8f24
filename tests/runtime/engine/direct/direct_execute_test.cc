// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/direct/direct_execute.h"

#include <catch2/catch.hpp>
#include <memory>
#include <numeric>

#include "tests/runtime/engine/direct/direct_world.h"

namespace hvd::rt {
namespace {

using test::DirectWorld;

// One request a rank, marked by all before any executes it. Element i of rank r is 1000 r + i.
class Requests {
 public:
  Requests(DirectWorld* world, RequestKind kind) : world_(*world), kind_(kind) {}

  void Add(const std::vector<int64_t>& shape, const std::vector<int64_t>& splits = {}) {
    auto& request = *requests.emplace_back(std::make_unique<Request>());
    Signature& s = request.signature;
    s.kind = kind_;
    s.dtype = HVD_INT32;
    s.op = kind_ == RequestKind::kReduceScatter ? HVD_SUM : 0;
    s.ndim = static_cast<int32_t>(shape.size());
    std::copy(shape.begin(), shape.end(), s.shape.begin());
    request.buffers.splits = splits;
    auto& data = *inputs_.emplace_back(std::make_unique<std::vector<int32_t>>(s.elements()));
    std::iota(data.begin(), data.end(), 1000 * static_cast<int32_t>(requests.size() - 1));
    request.buffers.input = data.data();
  }

  // False when the marks send them through the board.
  bool MarkAll() {
    ticket_ = {world_.ranks[0]->numbers().Number("x"), 0, 0};
    for (size_t r = 0; r < requests.size(); ++r) {
      Direct& direct = *world_.ranks[r];
      words_.push_back(DirectWord(*requests[r], direct.size()));
      if (words_[r] != kThroughBoard) {
        WriteDirect(*requests[r], direct, direct.Room(ticket_, words_[r]));
      }
      direct.Publish(ticket_, words_[r]);
    }
    return words_[0] != kThroughBoard &&
           world_.ranks[0]->Look(ticket_, words_[0]) == Direct::Seen::kAllSame;
  }

  absl::Status Execute(int rank) {
    const absl::Status lost = ExecuteDirect(*world_.ranks[rank], ticket_, requests[rank].get());
    return lost.ok() ? requests[rank]->result.status : lost;
  }
  std::vector<int32_t> Result(int rank) const {
    const Request& request = *requests[rank];
    const auto* data = static_cast<const int32_t*>(request.result.owned);
    size_t count = 1;
    for (const int64_t extent : request.result.shape) count *= static_cast<size_t>(extent);
    return {data, data + count};
  }

  std::vector<std::unique_ptr<Request>> requests;

 private:
  DirectWorld& world_;
  const RequestKind kind_;
  DirectTicket ticket_;
  std::vector<uint64_t> words_;
  std::vector<std::unique_ptr<std::vector<int32_t>>> inputs_;
};

TEST_CASE("a direct reduce-scatter: uneven rows, in the line and beyond it, and none") {
  for (const int64_t rows : {0, 1, 3, 4, 5, 13, 14, 512}) {
    DirectWorld world(3);
    Requests all(&world, RequestKind::kReduceScatter);
    for (int r = 0; r < 3; ++r) all.Add({rows, 2});
    REQUIRE(all.MarkAll());
    int32_t element = 0;
    for (int r = 0; r < 3; ++r) {
      REQUIRE(all.Execute(r).ok());
      const int64_t mine = rows / 3 + (r < rows % 3 ? 1 : 0);
      CHECK(all.requests[r]->result.shape == std::vector<int64_t>{mine, 2});
      std::vector<int32_t> wanted;
      for (int64_t i = 0; i < mine * 2; ++i) wanted.push_back(3000 + 3 * element++);
      CHECK(all.Result(r) == wanted);
    }
  }
}

TEST_CASE("a direct alltoall with splits, some of them zero") {
  DirectWorld world(3);
  Requests all(&world, RequestKind::kAlltoall);
  all.Add({5, 2}, {0, 4, 1});
  all.Add({0, 2}, {0, 0, 0});
  all.Add({300, 2}, {150, 0, 150});
  REQUIRE(all.MarkAll());
  const std::vector<std::vector<int64_t>> received = {{0, 0, 150}, {4, 0, 0}, {1, 0, 150}};
  const std::vector<std::vector<int32_t>> firsts = {{2000}, {0}, {8, 9, 2300}};
  for (int r = 0; r < 3; ++r) {
    REQUIRE(all.Execute(r).ok());
    CHECK(all.requests[r]->result.received_splits == received[r]);
    const std::vector<int32_t> result = all.Result(r);
    REQUIRE(result.size() >= firsts[r].size());
    CHECK(std::equal(firsts[r].begin(), firsts[r].end(), result.begin()));
    const int64_t rows = std::accumulate(received[r].begin(), received[r].end(), int64_t{0});
    CHECK(all.requests[r]->result.shape == std::vector<int64_t>{rows, 2});
  }
}

TEST_CASE("a direct alltoall without splits is even, and splits that say so are the same call") {
  DirectWorld world(2);
  Requests all(&world, RequestKind::kAlltoall);
  all.Add({4});
  all.Add({4}, {2, 2});
  REQUIRE(all.MarkAll());
  REQUIRE(all.Execute(0).ok());
  REQUIRE(all.Execute(1).ok());
  CHECK(all.Result(0) == std::vector<int32_t>{0, 1, 1000, 1001});
  CHECK(all.Result(1) == std::vector<int32_t>{2, 3, 1002, 1003});
}

TEST_CASE("an alltoall with no room for its splits beside it goes through the board") {
  DirectWorld world(2);
  Requests all(&world, RequestKind::kAlltoall);
  all.Add({1022});
  SECTION("on all") { all.Add({1022}); }
  SECTION("on one") { all.Add({1024}); }
  CHECK(all.MarkAll() == (all.requests[1]->signature.rows() == 1022));
}

TEST_CASE("an output that does not fit is the error of its rank alone") {
  DirectWorld world(2);
  Requests all(&world, RequestKind::kAlltoall);
  all.Add({4});
  all.Add({4});
  std::vector<int32_t> output(3), fits(4);
  all.requests[0]->buffers.output = output.data();
  all.requests[0]->buffers.output_rows = 3;
  all.requests[1]->buffers.output = fits.data();
  all.requests[1]->buffers.output_rows = 4;
  REQUIRE(all.MarkAll());
  CHECK(absl::IsFailedPrecondition(all.Execute(0)));
  CHECK(output == std::vector<int32_t>(3));
  CHECK(all.Execute(1).ok());
  CHECK(fits == std::vector<int32_t>{2, 3, 1002, 1003});
}

TEST_CASE("a direct allgather of different rows, one rank's input at its place in the output") {
  DirectWorld world(3);
  Requests all(&world, RequestKind::kAllgather);
  all.Add({2});
  all.Add({0});
  all.Add({1});
  std::vector<int32_t> in_place = {0, 1, 9};
  all.requests[0]->buffers.input = all.requests[0]->buffers.output = in_place.data();
  all.requests[0]->buffers.output_rows = 3;
  REQUIRE(all.MarkAll());
  for (int r = 0; r < 3; ++r) {
    REQUIRE(all.Execute(r).ok());
    CHECK((r == 0 ? in_place : all.Result(r)) == std::vector<int32_t>{0, 1, 2000});
  }
}

}  // namespace
}  // namespace hvd::rt
