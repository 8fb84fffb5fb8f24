// SPDX-License-Identifier: Apache-2.0
// Over several hosts: operations whose ranks give and get parts of different sizes.
#include <catch2/catch.hpp>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "tests/runtime/collective/numbers.h"
#include "tests/runtime/collective/worlds.h"

namespace hvd::rt::test {
namespace {

using Bytes = std::vector<unsigned char>;

template <class Body>
void On(const std::vector<WorldMaker>& makers, const Body& body) {
  for (const WorldMaker& make : makers) {
    const std::unique_ptr<World> world = make();
    INFO(world->name());
    body(*world);
  }
}

// Uneven parts around `count`; some ranks have none.
std::vector<size_t> UnevenCounts(int size, size_t count) {
  std::vector<size_t> counts(size);
  for (int rank = 0; rank < size; ++rank) {
    counts[rank] = rank % 3 == 1 && count > 1 ? 0 : count + rank * (count / 3);
  }
  return counts;
}

struct ScatterCase {
  hvd_dtype_t dtype = HVD_FLOAT32;
  hvd_op_t op = HVD_SUM;
  size_t count = 0;  // about, a rank
  double prescale = 1;
  double postscale = 1;
  int divisor = 0;
};

double ValueOf(const ScatterCase& c, int rank, size_t i) {
  if (c.op == HVD_PRODUCT) return (i + rank) % 8 == 0 ? 2 : 1;
  const int bias = IsSigned(c.dtype) ? 3 : 0;
  return static_cast<double>((i * 5 + rank * 3 + i / 7) % 7) - bias;
}

double ExpectedOf(const ScatterCase& c, int size, size_t i) {
  std::vector<double> values(size);
  for (int rank = 0; rank < size; ++rank) values[rank] = ValueOf(c, rank, i) * c.prescale;
  const bool averages = c.op == HVD_AVERAGE;
  const double divisor = !averages ? 1 : c.divisor > 0 ? c.divisor : size;
  if (c.dtype == HVD_BOOL || IsBits(c.op)) return Expected(c.dtype, c.op, values);
  double result = averages ? std::accumulate(values.begin(), values.end(), 0.0)
                           : Expected(HVD_FLOAT64, c.op, values);
  result = result * c.postscale / divisor;
  if (!IsFloat(c.dtype)) return std::trunc(result);
  unsigned char rounded[16] = {};
  Encode(c.dtype, result, rounded);
  return Decode(c.dtype, rounded);
}

std::string CheckReduceScatter(Collectives& ranks, const ScatterCase& c) {
  const size_t width = DtypeBytes(c.dtype);
  const std::vector<size_t> counts = UnevenCounts(ranks.size(), c.count);
  const size_t total = std::accumulate(counts.begin(), counts.end(), size_t{0});
  const size_t before = std::accumulate(counts.begin(), counts.begin() + ranks.rank(), size_t{0});
  const size_t mine = counts[ranks.rank()];
  Bytes input(total * width + 1);
  for (size_t i = 0; i < total; ++i) {
    Encode(c.dtype, ValueOf(c, ranks.rank(), i), &input[1 + i * width]);
  }
  const Bytes untouched = input;
  Bytes output(mine * width + 8, 0xee);
  ReduceScatterArgs args;
  args.input = &input[1];
  args.output = output.data();
  args.count_by_rank = counts;
  args.dtype = c.dtype;
  args.op = c.op;
  args.prescale = c.prescale;
  args.postscale = c.postscale;
  args.divisor = c.divisor;
  if (absl::Status done = ranks.ReduceScatter(args); !done.ok()) return done.ToString();
  if (input != untouched) return "the input was written";
  for (size_t i = 0; i < 8; ++i) {
    if (output[mine * width + i] != 0xee) return "more than the own part was written";
  }
  for (size_t i = 0; i < mine; ++i) {
    const double want = ExpectedOf(c, ranks.size(), before + i);
    const double got = Decode(c.dtype, &output[i * width]);
    if (got != want) {
      return absl::StrCat("reduce-scatter dtype ", c.dtype, " op ", c.op, " count ", c.count,
                          ": element ", i, " of rank ", ranks.rank(), " is ", got, ", not ", want);
    }
  }
  return "";
}

// Returns how many bytes rank `from` sends to rank `to`.
size_t SentBytes(int from, int to, size_t bytes) {
  return (from + 2 * to) % 4 == 1 ? 0 : bytes + 3 * from + to;
}
unsigned char SentByte(int from, int to, size_t i) {
  return static_cast<unsigned char>(i * 31 + from * 7 + to * 13 + i / 251);
}

std::string CheckAlltoall(Collectives& ranks, size_t bytes) {
  const int me = ranks.rank();
  std::vector<size_t> send(ranks.size());
  std::vector<size_t> receive(ranks.size());
  Bytes input;
  Bytes want;
  for (int peer = 0; peer < ranks.size(); ++peer) {
    send[peer] = SentBytes(me, peer, bytes);
    receive[peer] = SentBytes(peer, me, bytes);
    for (size_t i = 0; i < send[peer]; ++i) input.push_back(SentByte(me, peer, i));
    for (size_t i = 0; i < receive[peer]; ++i) want.push_back(SentByte(peer, me, i));
  }
  Bytes output(want.size());
  const absl::Status done = ranks.Alltoall({input.data(), output.data(), send, receive});
  if (!done.ok()) return done.ToString();
  return output == want ? "" : absl::StrCat("alltoall of ", bytes, " bytes is wrong");
}

TEST_CASE("reduce-scatter: every type and operation, uneven and empty parts") {
  On(AcrossWorlds(), [](World& world) {
    const std::string complaint = world.Run([](Collectives& ranks) -> std::string {
      for (const hvd_dtype_t dtype : kAllDtypes) {
        for (const hvd_op_t op : kAllOps) {
          if (!Exists(dtype, op)) continue;
          for (const size_t count : {0, 1, 7, 3001}) {
            std::string wrong = CheckReduceScatter(ranks, {dtype, op, count});
            if (!wrong.empty()) return wrong;
          }
        }
      }
      return CheckReduceScatter(ranks, {HVD_FLOAT32, HVD_SUM, 200003});
    });
    REQUIRE(complaint == "");
  });
}

TEST_CASE("reduce-scatter: scales") {
  On(AcrossWorlds(), [](World& world) {
    const std::string complaint = world.Run([](Collectives& ranks) -> std::string {
      for (const hvd_dtype_t dtype : {HVD_FLOAT16, HVD_BFLOAT16, HVD_FLOAT32, HVD_FLOAT64}) {
        for (const hvd_op_t op : kAllOps) {
          if (!IsScalable(dtype, op)) continue;
          const double before = op == HVD_PRODUCT ? 1 : 0.5;
          std::string wrong = CheckReduceScatter(ranks, {dtype, op, 2003, before, 4, 2});
          if (!wrong.empty()) return wrong;
        }
      }
      unsigned char x = 1;
      const std::vector<size_t> counts(ranks.size(), 0);
      ReduceScatterArgs args;
      args.input = args.output = &x;
      args.count_by_rank = counts;
      args.dtype = HVD_BOOL;
      args.op = HVD_AVERAGE;
      return ranks.ReduceScatter(args).code() == absl::StatusCode::kInvalidArgument
                 ? CheckReduceScatter(ranks, {HVD_INT32, HVD_SUM, 5})
                 : "an average of bools was not refused";
    });
    REQUIRE(complaint == "");
  });
}

// Values whose sum depends on the order: where an element lies must not matter.
std::string CheckSlicesOfAllreduce(Collectives& ranks, size_t count) {
  const std::vector<size_t> counts = UnevenCounts(ranks.size(), count);
  const size_t total = std::accumulate(counts.begin(), counts.end(), size_t{0});
  const size_t before = std::accumulate(counts.begin(), counts.begin() + ranks.rank(), size_t{0});
  constexpr float kValues[] = {1e8f, 1, -1e8f};
  std::vector<float> input(total), sums(total), output(counts[ranks.rank()]);
  for (size_t i = 0; i < total; ++i) input[i] = kValues[(i + ranks.rank()) % 3];
  ReduceArgs all;
  all.input = input.data();
  all.output = sums.data();
  all.count = total;
  all.dtype = HVD_FLOAT32;
  all.op = HVD_SUM;
  if (absl::Status done = ranks.Allreduce(all); !done.ok()) return done.ToString();
  ReduceScatterArgs args;
  args.input = input.data();
  args.output = output.data();
  args.count_by_rank = counts;
  args.dtype = HVD_FLOAT32;
  args.op = HVD_SUM;
  if (absl::Status done = ranks.ReduceScatter(args); !done.ok()) return done.ToString();
  for (size_t i = 0; i < output.size(); ++i) {
    if (output[i] == sums[before + i]) continue;
    return absl::StrCat("count ", count, ": element ", i, " of rank ", ranks.rank(), " is ",
                        output[i], ", the allreduce's is ", sums[before + i]);
  }
  return "";
}

TEST_CASE("reduce-scatter: in the deterministic mode the slices of an allreduce") {
  On(DeterministicWorlds(), [](World& world) {
    const std::string complaint = world.Run([](Collectives& ranks) -> std::string {
      std::string wrong;
      for (const size_t count : {1, 7, 3001, 60001}) {
        const std::string here = CheckSlicesOfAllreduce(ranks, count);
        if (wrong.empty()) wrong = here;  // the others go on: so does this rank
      }
      if (!wrong.empty()) (void)ranks.Barrier();  // which those who complain are left out of
      return wrong;
    });
    REQUIRE(complaint == "");
  });
}

TEST_CASE("alltoall: uneven and empty parts") {
  On(AcrossWorlds(), [](World& world) {
    const std::string complaint = world.Run([](Collectives& ranks) -> std::string {
      for (const size_t bytes : {0, 1, 50, 700, 9001, 300007}) {
        if (std::string wrong = CheckAlltoall(ranks, bytes); !wrong.empty()) return wrong;
      }
      return "";
    });
    REQUIRE(complaint == "");
  });
}

}  // namespace
}  // namespace hvd::rt::test
