// SPDX-License-Identifier: Apache-2.0
// Memory that runs out while a request is submitted.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/runtime/engine/engine_world.h"
#include "tests/runtime/engine/scarce_memory.h"

namespace hvd::rt {
namespace {

using test::FillSum;
using test::Problems;
using test::RunWorld;

absl::Status SubmitWith(int allocations, Engine* engine, Request* request) {
  const test::ScarceMemory scarce(allocations);
  return engine->Submit(request);
}

// A name of its own, longer than a string keeps without memory; or none.
std::string NameOf(int call, bool named) {
  return named ? "a name that needs memory " + std::to_string(call) : "";
}

// Submits with ever more memory until it is enough, or another error comes.
absl::Status SubmitAtLast(Engine* engine, Request* request, Problems* problems) {
  absl::Status status;
  for (int allocations = 0; allocations < 100; ++allocations) {
    status = SubmitWith(allocations, engine, request);
    if (!absl::IsInternal(status)) return status;
    problems->Expect(status == OutOfMemory(), status.ToString());
  }
  return status;
}

TEST_CASE("a request for which there is no memory is not submitted, and may be again") {
  const std::vector<std::vector<HostShape>> worlds = {{{"a", 1}}, {{"a", 2}}, {{"a", 1}, {"b", 1}}};
  for (const std::vector<HostShape>& hosts : worlds) {
    CAPTURE(hosts.size(), hosts[0].ranks);
    CHECK(RunWorld(hosts, [&](Engine& engine, Problems& problems) {
            for (int call = 0; call < 40; ++call) {
              std::vector<float> x(10, 1.0f);
              Request request;
              FillSum(&request, NameOf(call, call % 2 == 0), &x);
              absl::Status status = engine.world().rank() == 0
                                        ? SubmitAtLast(&engine, &request, &problems)
                                        : engine.Submit(&request);
              if (status.ok()) status = engine.Wait(&request);
              problems.Expect(status.ok(), status.ToString());
              const auto ranks = static_cast<float>(engine.world().topology().size());
              problems.Expect(x[9] == ranks, "sum " + std::to_string(x[9]));
            }
          }) == "");
  }
}

TEST_CASE("a request that others know of when memory runs out ends the epoch and says where") {
  CHECK(RunWorld({{"a", 2}}, [&](Engine& engine, Problems& problems) {
          absl::Status status;
          for (int call = 0; call < 100 && status.ok(); ++call) {
            std::vector<float> x(50000, 1.0f);
            Request request;
            FillSum(&request, NameOf(call, true), &x);
            status = engine.world().rank() == 0 ? SubmitAtLast(&engine, &request, &problems)
                                                : engine.Submit(&request);
            if (status.ok()) status = engine.Wait(&request);
          }
          const std::string text(status.message());
          problems.Expect(
              absl::IsAborted(status) && text.find("rank 0 cannot go on in 'a name that") == 0,
              status.ToString());
        }) == "");
}

std::vector<std::unique_ptr<Request>> MakeGroup(const std::string& name, std::vector<float>* x) {
  std::vector<std::unique_ptr<Request>> group;
  for (const hvd_dtype_t dtype : {HVD_FLOAT32, HVD_INT32, HVD_UINT8}) {
    group.push_back(std::make_unique<Request>());
    FillSum(group.back().get(), name, x);
    group.back()->signature.dtype = dtype;
    group.back()->signature.group_count = 1;
    group.back()->signature.group_types = 3;
  }
  return group;
}

absl::Status WaitForAll(Engine& engine, const std::vector<std::unique_ptr<Request>>& group) {
  absl::Status status;
  for (const auto& request : group) {
    const bool done = request->done.load();
    const absl::Status ended = done ? request->result.status : engine.Wait(request.get());
    if (status.ok()) status = ended;
  }
  return status;
}

// Rank 0 has so many allocations; what came of it: 0 not at all at first, 1 the whole, 2 the end.
int SubmitGroupWith(int allocations) {
  int came = -1;
  CHECK(RunWorld({{"a", 2}}, [&](Engine& engine, Problems& problems) {
          std::vector<float> x(10, 1.0f);
          auto group = MakeGroup("a group whose name needs memory", &x);
          absl::Status status;
          if (engine.world().rank() == 0) {
            {
              const test::ScarceMemory scarce(allocations);
              status = engine.SubmitGroup(group);
            }
            came = status.ok() ? 1 : 0;
            problems.Expect(status.ok() || status == OutOfMemory(), status.ToString());
            if (!status.ok()) status = engine.SubmitGroup(group);
          } else {
            status = engine.SubmitGroup(group);
          }
          if (status.ok()) status = WaitForAll(engine, group);
          if (status.ok()) return;
          if (engine.world().rank() == 0) came = 2;
          problems.Expect(absl::IsAborted(status), status.ToString());
        }) == "");
  return came;
}

TEST_CASE(
    "a group for which there is no memory is submitted as a whole, or not, or ends the epoch") {
  std::vector<int> came;
  for (int allocations = 0; allocations < 60; ++allocations) {
    came.push_back(SubmitGroupWith(allocations));
  }
  CHECK(came.front() == 0);
  CHECK(std::count(came.begin(), came.end(), 2) > 0);
  CHECK(came.back() == 1);
}

// Rank 0 sends with so many allocations, and waits with them; what came of it: 0 it was not
// submitted, 1 it was sent, 2 the end of the epoch.
int SendWith(int allocations, size_t count) {
  int came = -1;
  CHECK(RunWorld({{"a", 2}}, [&](Engine& engine, Problems& problems) {
          const bool sends = engine.world().rank() == 0;
          std::vector<float> x(count, sends ? 7.0f : 0.0f);
          Request request;
          FillSum(&request, "", &x);
          request.unnamed = false;
          request.signature.kind = sends ? RequestKind::kSend : RequestKind::kReceive;
          request.signature.op = 0;
          request.peer = sends ? 1 : 0;
          absl::Status status;
          if (sends) {
            const test::ScarceMemory scarce(allocations);
            status = engine.Run(&request);
          } else {
            status = engine.Run(&request);
          }
          if (sends) came = status.ok() ? 1 : 0;
          if (status == OutOfMemory()) status = engine.Run(&request);
          problems.Expect(status.ok() || absl::IsAborted(status), status.ToString());
          if (sends && !status.ok()) came = 2;
          if (status.ok()) problems.Expect(x.back() == 7.0f, "what was received");
        }) == "");
  return came;
}

TEST_CASE("memory that runs out in a send is an error, whatever the rank was doing") {
  for (const size_t count : {size_t{10}, size_t{100000}}) {
    CAPTURE(count);
    std::vector<int> came;
    for (int allocations = 0; allocations < 40; ++allocations) {
      came.push_back(SendWith(allocations, count));
    }
    CHECK(came.front() == 0);
    CHECK(std::count(came.begin(), came.end(), 2) > 0);
    CHECK(std::count(came.begin(), came.end(), -1) == 0);
  }
}

}  // namespace
}  // namespace hvd::rt
