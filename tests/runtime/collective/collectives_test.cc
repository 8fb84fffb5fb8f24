// SPDX-License-Identifier: Apache-2.0
// One suite for every implementation of Collectives.
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/collective/reduction_rules.h"
#include "tests/runtime/collective/numbers.h"
#include "tests/runtime/collective/worlds.h"
#include "tests/support/patience.h"

namespace hvd::rt::test {
namespace {

using Bytes = std::vector<unsigned char>;

// A rank's value of an element: small, so that every type holds all results exactly.
double ValueOf(hvd_dtype_t dtype, hvd_op_t op, int rank, size_t i) {
  if (op == HVD_PRODUCT) return (i + rank) % 8 == 0 ? 2 : 1;
  const int bias = IsSigned(dtype) ? 3 : 0;
  return static_cast<double>((i * 5 + rank * 3 + i / 7) % 7) - bias;
}

struct AllreduceCase {
  hvd_dtype_t dtype;
  hvd_op_t op;
  size_t count;
  bool in_place;
  size_t misalignment = 0;
};

std::string CheckAllreduce(Collectives& ranks, const AllreduceCase& c) {
  const size_t width = DtypeBytes(c.dtype);
  Bytes input(c.misalignment + c.count * width);
  for (size_t i = 0; i < c.count; ++i) {
    Encode(c.dtype, ValueOf(c.dtype, c.op, ranks.rank(), i), &input[c.misalignment + i * width]);
  }
  const Bytes before = input;
  Bytes other(c.in_place ? 0 : input.size());
  unsigned char* output = (c.in_place ? input : other).data() + c.misalignment;
  const absl::Status status =
      ranks.Allreduce({input.data() + c.misalignment, output, c.count, c.dtype, c.op});
  if (!status.ok()) return status.ToString();
  if (!c.in_place && input != before) return "the input was written";
  std::vector<double> values(ranks.size());
  for (size_t i = 0; i < c.count; ++i) {
    for (int rank = 0; rank < ranks.size(); ++rank) values[rank] = ValueOf(c.dtype, c.op, rank, i);
    const double want = Expected(c.dtype, c.op, values);
    const double got = Decode(c.dtype, output + i * width);
    if (got != want) {
      return absl::StrCat("allreduce dtype ", c.dtype, " op ", c.op, " count ", c.count,
                          c.in_place ? " in place" : "", ": element ", i, " is ", got, ", not ",
                          want);
    }
  }
  return "";
}

std::string CheckAllgather(Collectives& ranks, const std::vector<size_t>& bytes, bool in_place) {
  size_t at = 0;
  const size_t total = std::accumulate(bytes.begin(), bytes.end(), size_t{0});
  Bytes want;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    if (rank < ranks.rank()) at += bytes[rank];
    for (size_t i = 0; i < bytes[rank]; ++i) want.push_back((i * 31 + rank * 7 + i / 251) % 256);
  }
  const size_t mine = bytes[ranks.rank()];
  Bytes output(total);
  Bytes input(want.begin() + at, want.begin() + at + mine);
  if (in_place) std::copy(input.begin(), input.end(), output.begin() + at);
  const void* source = in_place ? output.data() + at : input.data();
  const absl::Status status = ranks.Allgather({source, output.data(), bytes});
  if (!status.ok()) return status.ToString();
  return output == want ? "" : absl::StrCat("allgather of ", total, " bytes is wrong");
}

std::string CheckBroadcast(Collectives& ranks, size_t bytes, int root) {
  Bytes want(bytes);
  for (size_t i = 0; i < bytes; ++i) want[i] = (i * 13 + root * 5 + i / 253) % 256;
  const bool is_root = ranks.rank() == root;
  Bytes input = is_root ? want : Bytes();
  Bytes output(bytes);
  const bool in_place = is_root && root % 2 == 0;
  const absl::Status status =
      ranks.Broadcast({input.data(), in_place ? input.data() : output.data(), bytes, root});
  if (!status.ok()) return status.ToString();
  return (in_place ? input : output) == want
             ? ""
             : absl::StrCat("broadcast of ", bytes, " bytes from ", root, " is wrong");
}

// Parts of uneven sizes around `bytes`, some empty.
std::vector<size_t> UnevenParts(int size, size_t bytes) {
  std::vector<size_t> parts(size);
  for (int rank = 0; rank < size; ++rank) {
    parts[rank] = rank % 3 == 1 && bytes > 1 ? 0 : bytes + rank * (bytes / 3);
  }
  return parts;
}

template <class Body>
void OnAllWorlds(const Body& body) {
  for (const WorldMaker& make : AllWorlds()) {
    const std::unique_ptr<World> world = make();
    INFO(world->name());
    body(*world);
  }
}

TEST_CASE("allreduce: every type and operation, in place and not, aligned and not") {
  OnAllWorlds([](World& world) {
    const std::string complaint = world.Run([](Collectives& ranks) -> std::string {
      for (const hvd_dtype_t dtype : kAllDtypes) {
        for (const hvd_op_t op : kAllOps) {
          if (!Exists(dtype, op)) continue;
          for (const size_t count : {0, 1, 7, 1000, 20003}) {
            const bool is_rare = IsBits(op) || dtype == HVD_UINT16 || dtype > HVD_BFLOAT16;
            if (is_rare && count < 1000 && count != 1) continue;  // the ways are the same
            std::string wrong = CheckAllreduce(ranks, {dtype, op, count, true});
            if (wrong.empty() && (!is_rare || count == 1000)) {
              wrong = CheckAllreduce(ranks, {dtype, op, count, false, 3});
            }
            if (!wrong.empty()) return wrong;
          }
        }
      }
      return "";
    });
    REQUIRE(complaint == "");
  });
}

TEST_CASE("allreduce: large tensors") {
  OnAllWorlds([](World& world) {
    const std::string complaint = world.Run([](Collectives& ranks) -> std::string {
      std::string wrong = CheckAllreduce(ranks, {HVD_FLOAT32, HVD_SUM, 700001, true});
      if (wrong.empty()) wrong = CheckAllreduce(ranks, {HVD_BFLOAT16, HVD_AVERAGE, 700001, false});
      return wrong;
    });
    REQUIRE(complaint == "");
  });
}

TEST_CASE("allreduce: what there is not is refused, and the group lives on") {
  OnAllWorlds([](World& world) {
    const std::string complaint = world.Run([](Collectives& ranks) -> std::string {
      for (const hvd_dtype_t dtype : kAllDtypes) {
        for (const hvd_op_t op : kAllOps) {
          if (Exists(dtype, op)) continue;
          unsigned char element[16] = {};
          const absl::Status refused = ranks.Allreduce({element, element, 1, dtype, op});
          const bool named = refused.message().find(DtypeName(dtype)) != std::string::npos;
          if (!absl::IsInvalidArgument(refused) || !named) return "dtype " + refused.ToString();
          std::string wrong = CheckAllreduce(ranks, {HVD_INT32, HVD_SUM, 5, true});
          if (!wrong.empty()) return wrong;
        }
      }
      return "";
    });
    REQUIRE(complaint == "");
  });
}

TEST_CASE("allreduce: every rank ends with the same bits, NaN included") {
  OnAllWorlds([](World& world) {
    for (const hvd_dtype_t dtype :
         {HVD_FLOAT16, HVD_BFLOAT16, HVD_FLOAT32, HVD_FLOAT64, HVD_FLOAT8_E4M3FN, HVD_COMPLEX64}) {
      for (const size_t count : {3, 2000, 100001}) {
        std::vector<Bytes> results(world.size());
        const std::string complaint = world.Run([&](Collectives& ranks) -> std::string {
          std::mt19937_64 random(ranks.rank() * 1000 + count);
          Bytes data(count * DtypeBytes(dtype));
          for (auto& byte : data) byte = static_cast<unsigned char>(random());
          const absl::Status done =
              ranks.Allreduce({data.data(), data.data(), count, dtype, HVD_AVERAGE});
          results[ranks.rank()] = data;
          return done.ok() ? "" : done.ToString();
        });
        REQUIRE(complaint == "");
        INFO("dtype " << dtype << " count " << count);
        for (const Bytes& result : results) REQUIRE((result == results[0]));
      }
    }
  });
}

TEST_CASE("allgather: uneven and empty parts, in place and not") {
  OnAllWorlds([](World& world) {
    const std::string complaint = world.Run([](Collectives& ranks) -> std::string {
      for (const size_t bytes : {0, 1, 50, 700, 9001, 300007}) {
        const std::vector<size_t> parts = UnevenParts(ranks.size(), bytes);
        std::string wrong = CheckAllgather(ranks, parts, false);
        if (wrong.empty()) wrong = CheckAllgather(ranks, parts, true);
        if (!wrong.empty()) return wrong;
      }
      return "";
    });
    REQUIRE(complaint == "");
  });
}

TEST_CASE("broadcast: from every root") {
  OnAllWorlds([](World& world) {
    const std::string complaint = world.Run([](Collectives& ranks) -> std::string {
      for (const size_t bytes : {0, 1, 56, 57, 5000, 70001, 2000003}) {
        for (int root = 0; root < ranks.size(); ++root) {
          std::string wrong = CheckBroadcast(ranks, bytes, root);
          if (!wrong.empty()) return wrong;
        }
      }
      return "";
    });
    REQUIRE(complaint == "");
  });
}

TEST_CASE("barrier: nobody passes before all have come") {
  OnAllWorlds([](World& world) {
    std::atomic<int> arrived{0};
    const std::string complaint = world.Run([&](Collectives& ranks) -> std::string {
      for (int round = 1; round <= 200; ++round) {
        ++arrived;
        if (absl::Status passed = ranks.Barrier(); !passed.ok()) return passed.ToString();
        if (arrived < round * ranks.size()) return "passed too early";
        if (absl::Status passed = ranks.Barrier(); !passed.ok()) return passed.ToString();
      }
      return "";
    });
    REQUIRE(complaint == "");
  });
}

TEST_CASE("a long mix of operations and sizes, with stragglers") {
  OnAllWorlds([](World& world) {
    const std::string complaint = world.Run([](Collectives& ranks) -> std::string {
      std::mt19937 same(17);                 // every rank draws the same operations
      std::mt19937 own(100 + ranks.rank());  // and its own delays
      for (int i = 0; i < 400; ++i) {
        const size_t sizes[] = {1, 10, 600, 5000, 20000, 90000};
        const size_t bytes = sizes[same() % 6];
        const unsigned kind = same() % 4;
        const int root = static_cast<int>(same() % ranks.size());
        for (unsigned spin = own() % 20000; spin > 0; --spin) asm volatile("");
        if (own() % 50 == 0) std::this_thread::yield();
        std::string wrong;
        if (kind == 0) wrong = CheckAllreduce(ranks, {HVD_INT16, HVD_SUM, bytes / 2, i % 2 == 0});
        if (kind == 1) wrong = CheckAllgather(ranks, UnevenParts(ranks.size(), bytes), i % 2 == 0);
        if (kind == 2) wrong = CheckBroadcast(ranks, bytes, root);
        if (kind == 3 && !ranks.Barrier().ok()) wrong = "barrier failed";
        if (!wrong.empty()) return absl::StrCat("operation ", i, ": ", wrong);
      }
      return "";
    });
    REQUIRE(complaint == "");
  });
}

TEST_CASE("abort: a peer that never comes ends no wait, the epoch's end does, with its cause") {
  using Clock = std::chrono::steady_clock;
  OnAllWorlds([](World& world) {
    if (world.size() == 1) return;
    for (const size_t count : {1, 3000, 700000}) {
      std::atomic<int> waiting{0};
      Clock::time_point aborted_at;
      const std::string complaint = world.Run([&](Collectives& ranks) -> std::string {
        std::vector<float> data(count);
        const ReduceArgs args{data.data(), data.data(), count, HVD_FLOAT32, HVD_SUM};
        if (absl::Status first = ranks.Allreduce(args); !first.ok()) return first.ToString();
        if (ranks.rank() == 0) {
          while (waiting < ranks.size() - 1) std::this_thread::yield();
          aborted_at = Clock::now();
          world.Abort("rank 0 was lost");
        } else {
          ++waiting;
        }
        for (int call = 0; call < 2; ++call) {
          const absl::Status ended = ranks.Allreduce(args);
          if (ended.code() != absl::StatusCode::kAborted) return "not aborted: " + ended.ToString();
          if (ended.message() != "rank 0 was lost") return "wrong cause: " + ended.ToString();
        }
        if (ranks.Barrier().code() != absl::StatusCode::kAborted) return "barrier not aborted";
        return "";
      });
      REQUIRE(complaint == "");
      CHECK(Clock::now() - aborted_at < std::chrono::milliseconds(PatientMs(2000)));
    }
  });
}

}  // namespace
}  // namespace hvd::rt::test
