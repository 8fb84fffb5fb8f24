// SPDX-License-Identifier: Apache-2.0
// Results at the ends of the types' ranges, and under rules of arithmetic that programs have set:
// on every way, whatever the tensors' size and place.
#include <catch2/catch.hpp>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "runtime/collective/kernels/int_average.h"
#include "runtime/collective/reduction_rules.h"
#include "tests/runtime/collective/kernels/odd_floats.h"
#include "tests/runtime/collective/numbers.h"
#include "tests/runtime/collective/worlds.h"

namespace hvd::rt::test {
namespace {

using Bytes = std::vector<unsigned char>;

enum class Memory { kInPlace, kApart, kShared };

struct Case {
  hvd_dtype_t dtype = HVD_FLOAT32;
  hvd_op_t op = HVD_SUM;
  Memory memory = Memory::kApart;
  size_t count = 1;
  double prescale = 1;
  double postscale = 1;
  int divisor = 0;
};

// By rank. Shared, each rank finds everyone's, since ranks are threads.
struct Buffers {
  std::vector<Bytes> inputs, outputs;
  std::vector<const void*> input_at;
  std::vector<void*> output_at;

  Buffers(const Case& c, int size)
      : inputs(size, Bytes(c.count * DtypeBytes(c.dtype))), outputs(inputs) {
    for (int r = 0; r < size; ++r) {
      input_at.push_back(inputs[r].data());
      output_at.push_back(c.memory == Memory::kInPlace ? inputs[r].data() : outputs[r].data());
    }
  }
  const Bytes& Result(const Case& c, int rank) const {
    return c.memory == Memory::kInPlace ? inputs[rank] : outputs[rank];
  }
};

absl::Status Allreduce(Collectives& ranks, const Case& c, const Buffers& buffers) {
  ReducePart part{buffers.input_at[ranks.rank()], buffers.output_at[ranks.rank()], c.count, {}, {}};
  if (c.memory == Memory::kShared) {
    part.host_inputs = buffers.input_at;
    part.host_outputs = buffers.output_at;
  }
  ReduceArgs args;
  args.dtype = c.dtype;
  args.op = c.op;
  args.prescale = c.prescale;
  args.postscale = c.postscale;
  args.divisor = c.divisor;
  args.parts = {&part, 1};
  if (absl::Status ready = ranks.Barrier(); !ready.ok()) return ready;
  return ranks.Allreduce(args);
}

// In even parts; what a rank gets lies at the begin of its output.
absl::Status ReduceScatter(Collectives& ranks, const Case& c, const Buffers& buffers) {
  std::vector<size_t> counts;
  for (int r = 0; r < ranks.size(); ++r) {
    counts.push_back(c.count * (r + 1) / ranks.size() - c.count * r / ranks.size());
  }
  ReduceScatterArgs args;
  args.input = buffers.input_at[ranks.rank()];
  args.output = buffers.output_at[ranks.rank()];
  args.count_by_rank = counts;
  args.dtype = c.dtype;
  args.op = c.op;
  args.prescale = c.prescale;
  args.postscale = c.postscale;
  args.divisor = c.divisor;
  return ranks.ReduceScatter(args);
}

template <class Body>
void On(const std::vector<WorldMaker>& makers, const Body& body) {
  for (const WorldMaker& make : makers) {
    const std::unique_ptr<World> world = make();
    INFO(world->name());
    body(*world);
  }
}

// All ranks have `value` everywhere, and all are to get `want`.
struct Extreme {
  hvd_dtype_t dtype;
  hvd_op_t op;
  double value;
  double prescale;   // with 0: 1 / the ranks
  double postscale;  // with 0: 1 / the ranks
  double want;       // of SUM with no prescale by the ranks: of each
  double tolerance;  // relative
};

std::string CheckAll(const Case& c, const Extreme& extreme, const Bytes& result, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const double got = Decode(c.dtype, result.data() + i * DtypeBytes(c.dtype));
    if (std::abs(got - extreme.want) <= extreme.tolerance * std::abs(extreme.want)) continue;
    return absl::StrCat("dtype ", c.dtype, " op ", c.op, " of ", extreme.value, " memory ",
                        static_cast<int>(c.memory), " count ", c.count, ": element ", i, " is ",
                        got, ", not ", extreme.want);
  }
  return "";
}

void RunExtreme(World& world, const Extreme& extreme) {
  const double ranks = world.size();
  for (const Memory memory : {Memory::kInPlace, Memory::kApart, Memory::kShared}) {
    for (const size_t count : {1, 3, 700, 40003}) {
      const Case c{extreme.dtype,
                   extreme.op,
                   memory,
                   count,
                   extreme.prescale == 0 ? 1 / ranks : extreme.prescale,
                   extreme.postscale == 0 ? 1 / ranks : extreme.postscale};
      const size_t width = DtypeBytes(c.dtype);
      Buffers buffers(c, world.size());
      const std::string complaint = world.Run([&](Collectives& group) -> std::string {
        Bytes& input = buffers.inputs[group.rank()];
        for (size_t i = 0; i < count; ++i) Encode(c.dtype, extreme.value, &input[i * width]);
        if (absl::Status done = Allreduce(group, c, buffers); !done.ok()) return done.ToString();
        std::string wrong = CheckAll(c, extreme, buffers.Result(c, group.rank()), count);
        if (!wrong.empty() || memory != Memory::kApart) return wrong;
        const absl::Status done = ReduceScatter(group, c, buffers);
        if (!done.ok()) return done.ToString();
        const size_t mine = count * (group.rank() + 1) / group.size() -
                            count * static_cast<size_t>(group.rank()) / group.size();
        return CheckAll(c, extreme, buffers.Result(c, group.rank()), mine);
      });
      REQUIRE(complaint == "");
    }
  }
}

constexpr double kSmall = 0.02;  // a sum of eight 16-bit floats, each rounded

TEST_CASE("extremes: a prescale comes before the sum, in every type and way") {
  On(AllWorlds(), [](World& world) {
    RunExtreme(world, {HVD_FLOAT32, HVD_SUM, 3e38, 0, 1, 3e38, 1e-6});
    RunExtreme(world, {HVD_FLOAT64, HVD_SUM, 1.7e308, 0, 1, 1.7e308, 1e-14});
    RunExtreme(world, {HVD_BFLOAT16, HVD_SUM, 3e38, 0, 1, 3e38, kSmall});
    RunExtreme(world, {HVD_FLOAT16, HVD_SUM, 60000, 0, 1, 60000, kSmall});
    RunExtreme(world, {HVD_FLOAT32, HVD_AVERAGE, 3e38, 0, world.size() * 1.0, 3e38, 1e-6});
    // Prescaled values fit an int8 as long as they are summed; unscaled ones do not.
    RunExtreme(world, {HVD_INT8, HVD_SUM, 120, 1 / 16.0, 1, 7.0 * world.size(), 0});
  });
}

TEST_CASE("extremes: scales that no float32 holds") {
  On(AllWorlds(), [](World& world) {
    RunExtreme(world, {HVD_FLOAT32, HVD_MAX, 1e-30, 1e60, 1, 1e30, 1e-6});
    RunExtreme(world, {HVD_FLOAT32, HVD_MAX, 1e30, 1e-60, 1, 1e-30, 1e-6});
    RunExtreme(world, {HVD_FLOAT32, HVD_AVERAGE, 1e-30, 1, 1e60, 1e30, 1e-6});
    RunExtreme(world, {HVD_FLOAT32, HVD_AVERAGE, 0, 1e60, 1e60, 0, 0});
  });
}

TEST_CASE("extremes: an average is right wherever it can be represented") {
  On(AllWorlds(), [](World& world) {
    RunExtreme(world, {HVD_UINT8, HVD_AVERAGE, 200, 1, 1, 200, 0});
    RunExtreme(world, {HVD_INT8, HVD_AVERAGE, -128, 1, 1, -128, 0});
    RunExtreme(world, {HVD_INT16, HVD_AVERAGE, 20000, 1, 1, 20000, 0});
    RunExtreme(world, {HVD_INT32, HVD_AVERAGE, -2147483648.0, 1, 1, -2147483648.0, 0});
    RunExtreme(world, {HVD_INT64, HVD_AVERAGE, -0x1p63, 1, 1, -0x1p63, 0});
    RunExtreme(world, {HVD_FLOAT16, HVD_AVERAGE, 40000, 1, 1, 40000, kSmall});
    RunExtreme(world, {HVD_FLOAT16, HVD_AVERAGE, 0x1p-14, 1, 1, 0x1p-14, kSmall});
    // The same in other words.
    RunExtreme(world, {HVD_FLOAT16, HVD_SUM, 40000, 1, 0, 40000, kSmall});
    RunExtreme(world, {HVD_FLOAT16, HVD_AVERAGE, 40000, 0.5, 2, 40000, kSmall});
    RunExtreme(world, {HVD_UINT64, HVD_AVERAGE, 0x1p63 + 2048, 1, 1, 0x1p63 + 2048, 0});
    RunExtreme(world, {HVD_UINT64, HVD_MAX, 0x1p63 + 4096, 0.5, 1, 0x1p62 + 2048, 0});
    RunExtreme(world, {HVD_FLOAT8_E4M3FN, HVD_AVERAGE, 448, 1, 1, 448, 0});
    RunExtreme(world, {HVD_FLOAT8_E5M2, HVD_AVERAGE, 57344, 1, 1, 57344, 0});
  });
}

// Against arithmetic with 128 bits.
template <class T>
std::string CheckRandomAverage(Collectives& ranks, hvd_dtype_t dtype, const Case& shape,
                               Buffers& buffers) {
  std::vector<std::vector<T>> values(ranks.size());
  for (int r = 0; r < ranks.size(); ++r) {
    std::mt19937_64 random(r * 100 + dtype);
    for (size_t i = 0; i < shape.count; ++i) values[r].push_back(static_cast<T>(random()));
  }
  const std::vector<T>& mine = values[ranks.rank()];
  memcpy(buffers.inputs[ranks.rank()].data(), mine.data(), shape.count * sizeof(T));
  if (absl::Status done = Allreduce(ranks, shape, buffers); !done.ok()) return done.ToString();
  const int divisor = shape.divisor != 0 ? shape.divisor : ranks.size();
  for (size_t i = 0; i < shape.count; ++i) {
    Int128 sum = 0;
    for (int r = 0; r < ranks.size(); ++r) sum += values[r][i];
    T got;
    memcpy(&got, buffers.Result(shape, ranks.rank()).data() + i * sizeof(T), sizeof(T));
    const T want = shape.postscale == 1
                       ? static_cast<T>(sum / divisor)
                       : TruncateAs<T>(static_cast<double>(sum) * shape.postscale / divisor);
    if (got == want) continue;
    return absl::StrCat("dtype ", dtype, ": element ", i, " is ", got, ", not ", want);
  }
  return "";
}

TEST_CASE("averages of integers truncate the exact quotient, on one host and several") {
  On(AllWorlds(), [](World& world) {
    for (const hvd_dtype_t dtype : {HVD_UINT8, HVD_INT8, HVD_INT16, HVD_INT32, HVD_INT64,
                                    HVD_UINT16, HVD_UINT32, HVD_UINT64}) {
      for (const size_t count : {5, 3001}) {
        for (const double postscale : {1.0, 0.37}) {
          const Case c{dtype, HVD_AVERAGE, Memory::kApart, count, 1, postscale};
          Buffers buffers(c, world.size());
          const std::string complaint = world.Run([&](Collectives& ranks) -> std::string {
            switch (dtype) {
              case HVD_UINT8:
                return CheckRandomAverage<uint8_t>(ranks, dtype, c, buffers);
              case HVD_INT8:
                return CheckRandomAverage<int8_t>(ranks, dtype, c, buffers);
              case HVD_INT16:
                return CheckRandomAverage<int16_t>(ranks, dtype, c, buffers);
              case HVD_INT32:
                return CheckRandomAverage<int32_t>(ranks, dtype, c, buffers);
              case HVD_UINT16:
                return CheckRandomAverage<uint16_t>(ranks, dtype, c, buffers);
              case HVD_UINT32:
                return CheckRandomAverage<uint32_t>(ranks, dtype, c, buffers);
              case HVD_UINT64:
                return CheckRandomAverage<uint64_t>(ranks, dtype, c, buffers);
              default:
                return CheckRandomAverage<int64_t>(ranks, dtype, c, buffers);
            }
          });
          REQUIRE(complaint == "");
        }
      }
    }
  });
}

// Denormals, numbers whose sums overflow or are not exact, and integers to be scaled.
void FillOdd(const Case& c, int rank, Bytes* input) {
  std::mt19937_64 random(rank + 7);
  for (auto& byte : *input) byte = static_cast<unsigned char>(random());
  const size_t width = DtypeBytes(c.dtype);
  for (size_t i = 0; IsFloat(c.dtype) && i < c.count; i += 2) {
    const double denormal = c.dtype == HVD_FLOAT64   ? 0x1p-1070
                            : c.dtype == HVD_FLOAT16 ? 0x1p-23
                            : IsFloat8(c.dtype)      ? 0x1p-9
                                                     : 0x1p-130;
    Encode(c.dtype, denormal * static_cast<double>(i % 13 + 1), input->data() + i * width);
  }
}

std::vector<Bytes> ResultsUnder(World& world, const Case& c, bool odd) {
  Buffers buffers(c, world.size());
  const std::string complaint = world.Run([&](Collectives& ranks) -> std::string {
    FillOdd(c, ranks.rank(), &buffers.inputs[ranks.rank()]);
    if (odd) SetOddFloats(ranks.rank());
    const uint64_t rules = FloatRulesNow();
    const absl::Status done = Allreduce(ranks, c, buffers);
    const bool kept = FloatRulesNow() == rules;
    SetUsualFloats();
    if (!done.ok()) return done.ToString();
    return kept ? "" : "the thread's rules of arithmetic have changed";
  });
  REQUIRE(complaint == "");
  std::vector<Bytes> results;
  for (int r = 0; r < world.size(); ++r) results.push_back(buffers.Result(c, r));
  return results;
}

TEST_CASE("what a program has set for its floats changes no bit, and stays set") {
  On(AllWorlds(), [](World& world) {
    for (const hvd_dtype_t dtype :
         {HVD_FLOAT32, HVD_FLOAT64, HVD_FLOAT16, HVD_BFLOAT16, HVD_INT32, HVD_FLOAT8_E4M3FN}) {
      for (const hvd_op_t op : {HVD_SUM, HVD_AVERAGE, HVD_MAX}) {
        if (!Exists(dtype, op)) continue;
        for (const size_t count : {7, 3000, 20001}) {
          const Memory memory = count == 3000 ? Memory::kShared : Memory::kApart;
          const Case c{dtype, op, memory, count, op == HVD_AVERAGE ? 1 : 0.7};
          INFO("dtype " << dtype << " op " << op << " count " << count);
          const std::vector<Bytes> usual = ResultsUnder(world, c, false);
          REQUIRE((ResultsUnder(world, c, true) == usual));
          for (const Bytes& result : usual) REQUIRE((result == usual[0]));
        }
      }
    }
  });
}

}  // namespace
}  // namespace hvd::rt::test
