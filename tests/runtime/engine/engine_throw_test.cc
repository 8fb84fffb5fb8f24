// SPDX-License-Identifier: Apache-2.0
// Memory that runs out while the executor works: what is thrown must not get out of it.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "tests/runtime/engine/engine_world.h"

namespace hvd::rt {
namespace {

using test::FillSum;
using test::Problems;
using test::RunWorld;

// Adasum's working memory for so many elements is more than there can be; nobody comes to read
// them.
void FillTooLarge(Request* request, std::vector<float>* data) {
  FillSum(request, "huge", data);
  request->signature.op = HVD_ADASUM;
  request->signature.shape[0] = int64_t{1} << 62;
}

// The gathered rows of all ranks would need more memory than there can be.
void FillTooManyRows(Request* request, std::vector<float>* data, bool too_many) {
  FillSum(request, "huge", data);
  request->signature.kind = RequestKind::kAllgather;
  request->signature.op = 0;
  request->signature.shape[0] = too_many ? int64_t{1} << 61 : 1;
  request->buffers.output = nullptr;
}

bool Tells(const absl::Status& status) {
  const std::string text(status.message());
  return absl::IsAborted(status) && text.find("rank ") == 0 &&
         text.find("'huge'") != std::string::npos;
}

TEST_CASE("what is thrown while a tensor is executed ends the epoch and says on which rank") {
  const std::vector<std::vector<HostShape>> worlds = {{{"a", 1}}, {{"a", 3}}, {{"a", 1}, {"b", 1}}};
  for (const std::vector<HostShape>& hosts : worlds) {
    for (const bool by_handle : {false, true}) {
      CAPTURE(hosts.size(), hosts[0].ranks, by_handle);
      CHECK(RunWorld(hosts, [&](Engine& engine, Problems& problems) {
              std::vector<float> x(10, 1.0f);
              Request huge;
              FillTooLarge(&huge, &x);
              absl::Status status;
              if (by_handle) status = engine.Submit(&huge);
              if (status.ok()) status = by_handle ? engine.Wait(&huge) : engine.Run(&huge);
              problems.Expect(Tells(status), status.ToString());
              const absl::Status later = test::Sum(engine, "x", &x);
              problems.Expect(Tells(later), later.ToString());
            }) == "");
    }
  }
}

TEST_CASE("a rank without memory for a result ends the epoch at once and says which it is") {
  const std::vector<std::vector<HostShape>> worlds = {{{"a", 1}}, {{"a", 3}}, {{"a", 1}, {"b", 1}}};
  for (const std::vector<HostShape>& hosts : worlds) {
    CAPTURE(hosts.size(), hosts[0].ranks);
    CHECK(RunWorld(hosts, [&](Engine& engine, Problems& problems) {
            std::vector<float> x(10, 1.0f);
            Request huge;
            FillTooManyRows(&huge, &x, engine.world().rank() == 0);
            const absl::Status status = engine.Run(&huge);
            problems.Expect(Tells(status), status.ToString());
            const std::string cause = std::to_string(CauseOf(*engine.world().page()).rank);
            problems.Expect(status.message().find("rank " + cause + " ") == 0,
                            "the abort is rank " + cause + "'s, but " + status.ToString());
          }) == "");
  }
}

// Two run out at once, and the first dies before it has said so.
TEST_CASE("a rank that runs out of memory beside an abort that never comes says its own cause") {
  CHECK(RunWorld({{"a", 1}}, [&](Engine& engine, Problems& problems) {
          HostPage& page = *engine.world().page();
          page.abort_notes_taken.store(1);
          std::vector<float> x(10, 1.0f);
          Request huge;
          FillTooLarge(&huge, &x);
          const absl::Status status = engine.Run(&huge);
          problems.Expect(Tells(status) && status.message().find("rank 0") == 0, status.ToString());
        }) == "");
}

}  // namespace
}  // namespace hvd::rt
