// SPDX-License-Identifier: Apache-2.0
// Several tensors as one reduction, scales, and tensors that all ranks reach.
#include <catch2/catch.hpp>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/runtime/collective/numbers.h"
#include "tests/runtime/collective/worlds.h"

namespace hvd::rt::test {
namespace {

using Bytes = std::vector<unsigned char>;

enum class Memory { kInPlace, kApart, kShared, kSharedInPlace };

struct FusedCase {
  hvd_dtype_t dtype = HVD_FLOAT32;
  hvd_op_t op = HVD_SUM;
  std::vector<size_t> counts;
  Memory memory = Memory::kApart;
  double prescale = 1;
  double postscale = 1;
  int divisor = 0;
};

// The data of every rank for every tensor. Ranks are threads, so all reach all.
struct Tensors {
  std::vector<std::vector<Bytes>> inputs, outputs;  // by tensor, by rank
  std::vector<std::vector<const void*>> host_inputs;
  std::vector<std::vector<void*>> host_outputs;

  // Each tensor begins at another odd address.
  Tensors(const FusedCase& c, int size) {
    const bool in_place = c.memory == Memory::kInPlace || c.memory == Memory::kSharedInPlace;
    for (size_t t = 0; t < c.counts.size(); ++t) {
      const size_t bytes = t % 5 + c.counts[t] * DtypeBytes(c.dtype);
      inputs.emplace_back(size, Bytes(bytes));
      outputs.emplace_back(in_place ? 0 : size, Bytes(bytes));
      auto& to = in_place ? inputs.back() : outputs.back();
      host_inputs.emplace_back();
      host_outputs.emplace_back();
      for (int rank = 0; rank < size; ++rank) {
        host_inputs.back().push_back(inputs[t][rank].data() + t % 5);
        host_outputs.back().push_back(to[rank].data() + t % 5);
      }
    }
  }
  std::vector<ReducePart> Parts(const FusedCase& c, int rank) const {
    std::vector<ReducePart> parts;
    const bool shared = c.memory == Memory::kShared || c.memory == Memory::kSharedInPlace;
    for (size_t t = 0; t < c.counts.size(); ++t) {
      parts.push_back({host_inputs[t][rank], host_outputs[t][rank], c.counts[t], {}, {}});
      if (!shared) continue;
      parts.back().host_inputs = host_inputs[t];
      parts.back().host_outputs = host_outputs[t];
    }
    return parts;
  }
};

ReduceArgs ArgsOf(const FusedCase& c, const std::vector<ReducePart>& parts) {
  ReduceArgs args;
  args.dtype = c.dtype;
  args.op = c.op;
  args.prescale = c.prescale;
  args.postscale = c.postscale;
  args.divisor = c.divisor;
  args.parts = parts;
  return args;
}

double ValueOf(const FusedCase& c, int rank, size_t tensor, size_t i) {
  if (c.op == HVD_PRODUCT) return (i + rank + tensor) % 8 == 0 ? 2 : 1;
  const int bias = IsSigned(c.dtype) ? 3 : 0;
  return static_cast<double>((i * 5 + rank * 3 + tensor + i / 7) % 7) - bias;
}

double ExpectedScaled(const FusedCase& c, std::vector<double> values) {
  const bool is_float = IsFloat(c.dtype);
  for (double& value : values)
    value = is_float ? value * c.prescale : std::trunc(value * c.prescale);
  const double count = static_cast<double>(values.size());
  const double divisor = c.op != HVD_AVERAGE ? 1 : c.divisor > 0 ? c.divisor : count;
  if (c.dtype == HVD_BOOL) return Expected(c.dtype, c.op, values);
  double result = values[0];
  for (size_t i = 1; i < values.size(); ++i) {
    if (c.op == HVD_PRODUCT) result *= values[i];
    if (c.op == HVD_MIN) result = std::min(result, values[i]);
    if (c.op == HVD_MAX) result = std::max(result, values[i]);
    if (c.op == HVD_SUM || c.op == HVD_AVERAGE) result += values[i];
  }
  result = result * c.postscale / divisor;
  if (!is_float) return std::trunc(result);
  unsigned char rounded[16] = {};
  Encode(c.dtype, result, rounded);
  return Decode(c.dtype, rounded);
}

// Scales may be multiplied with one another first: a last place more or less.
double OneRounding(hvd_dtype_t dtype) {
  if (!IsFloat(dtype)) return 0;
  if (dtype == HVD_FLOAT64 || dtype == HVD_COMPLEX128) return 0x1p-52;
  if (dtype == HVD_FLOAT32 || dtype == HVD_COMPLEX64) return 0x1p-23;
  if (dtype == HVD_FLOAT8_E4M3FN) return 0x1p-3;
  if (dtype == HVD_FLOAT8_E5M2) return 0x1p-2;
  return dtype == HVD_FLOAT16 ? 0x1p-10 : 0x1p-7;
}

void Fill(const FusedCase& c, int rank, Tensors* tensors) {
  const size_t width = DtypeBytes(c.dtype);
  for (size_t t = 0; t < c.counts.size(); ++t) {
    unsigned char* to = tensors->inputs[t][rank].data() + t % 5;
    for (size_t i = 0; i < c.counts[t]; ++i) {
      Encode(c.dtype, ValueOf(c, rank, t, i), to + i * width);
    }
  }
}

std::string CheckResults(const FusedCase& c, int size, const std::vector<ReducePart>& parts) {
  const size_t width = DtypeBytes(c.dtype);
  std::vector<double> values(size);
  for (size_t t = 0; t < parts.size(); ++t) {
    for (size_t i = 0; i < parts[t].count; ++i) {
      for (int rank = 0; rank < size; ++rank) values[rank] = ValueOf(c, rank, t, i);
      const double want = ExpectedScaled(c, values);
      const double got =
          Decode(c.dtype, static_cast<const unsigned char*>(parts[t].output) + i * width);
      if (std::abs(got - want) <= OneRounding(c.dtype) * std::abs(want)) continue;
      return absl::StrCat("dtype ", c.dtype, " op ", c.op, " memory ", static_cast<int>(c.memory),
                          ": element ", i, " of tensor ", t, " is ", got, ", not ", want);
    }
  }
  return "";
}

void RunCase(World& world, const FusedCase& c) {
  Tensors tensors(c, world.size());
  const std::string complaint = world.Run([&](Collectives& ranks) -> std::string {
    Fill(c, ranks.rank(), &tensors);
    const std::vector<ReducePart> parts = tensors.Parts(c, ranks.rank());
    if (absl::Status ready = ranks.Barrier(); !ready.ok()) return ready.ToString();
    const absl::Status done = ranks.Allreduce(ArgsOf(c, parts));
    return done.ok() ? CheckResults(c, ranks.size(), parts) : done.ToString();
  });
  REQUIRE(complaint == "");
}

template <class Body>
void On(const std::vector<WorldMaker>& makers, const Body& body) {
  for (const WorldMaker& make : makers) {
    const std::unique_ptr<World> world = make();
    INFO(world->name());
    body(*world);
  }
}

constexpr Memory kAllMemories[] = {Memory::kInPlace, Memory::kApart, Memory::kShared,
                                   Memory::kSharedInPlace};

TEST_CASE("fused: tensors of odd sizes, empty ones among them, across hosts") {
  On(AcrossWorlds(), [](World& world) {
    for (const Memory memory : {Memory::kInPlace, Memory::kApart}) {
      for (const hvd_dtype_t dtype :
           {HVD_FLOAT32, HVD_BFLOAT16, HVD_INT8, HVD_UINT64, HVD_FLOAT8_E4M3FN, HVD_COMPLEX128}) {
        RunCase(world, {dtype, HVD_AVERAGE, {1, 0, 3, 2}, memory});
        RunCase(world, {dtype, HVD_AVERAGE, {0, 17, 1, 4097, 0, 999, 12345, 3, 63, 0}, memory});
      }
    }
    RunCase(world, {HVD_FLOAT32, HVD_SUM, {200001, 7, 60000, 1, 1, 1, 99999}, Memory::kApart});
    RunCase(world, {HVD_FLOAT32, HVD_SUM, {0, 0}, Memory::kApart});
  });
}

TEST_CASE("fused: tensors of odd sizes, empty ones among them, wherever they lie") {
  On(HostWorlds(), [](World& world) {
    for (const Memory memory : kAllMemories) {
      for (const hvd_dtype_t dtype : kAllDtypes) {
        const hvd_op_t op = dtype == HVD_BOOL ? HVD_MAX : HVD_AVERAGE;
        RunCase(world, {dtype, op, {1, 0, 3, 2}, memory});
        RunCase(world, {dtype, op, {0, 17, 1, 4097, 0, 999, 12345, 3, 63, 0}, memory});
      }
      RunCase(world, {HVD_FLOAT32, HVD_SUM, {200001, 7, 300000, 1, 1, 1, 99999}, memory});
      RunCase(world, {HVD_FLOAT32, HVD_SUM, {0, 0}, memory});
      RunCase(world, {HVD_FLOAT32, HVD_SUM, {70001}, memory});
    }
  });
}

TEST_CASE("scales: floats, across hosts") {
  On(AcrossWorlds(), [](World& world) {
    for (const hvd_dtype_t dtype : {HVD_FLOAT32, HVD_FLOAT16, HVD_BFLOAT16, HVD_FLOAT8_E5M2}) {
      for (const hvd_op_t op : {HVD_AVERAGE, HVD_MAX}) {
        RunCase(world, {dtype, op, {5, 2003}, Memory::kApart, 0.5, 3});
        RunCase(world, {dtype, op, {40003}, Memory::kInPlace, 2, 0.5, 2});
      }
    }
    RunCase(world, {HVD_INT16, HVD_SUM, {5, 2003}, Memory::kApart, 0.5, 3});
  });
}

TEST_CASE("scales: every type and operation") {
  On(HostWorlds(), [](World& world) {
    for (const hvd_dtype_t dtype : kAllDtypes) {
      for (const hvd_op_t op : kAllOps) {
        if (!IsScalable(dtype, op)) continue;
        RunCase(world, {dtype, op, {5, 2003}, Memory::kApart, 0.5, 3});
        RunCase(world, {dtype, op, {2003}, Memory::kInPlace, 1, 0.5, 2});
        const double before = op == HVD_PRODUCT ? 1 : 2;  // 2^8 would not fit a byte
        RunCase(world, {dtype, op, {40003}, Memory::kShared, before, 1, 4});
      }
    }
  });
}

TEST_CASE("scales: bool and bits cannot be scaled, and the group lives on") {
  On(AllWorlds(), [](World& world) {
    const std::string complaint = world.Run([](Collectives& ranks) -> std::string {
      unsigned char x = 1;
      for (const auto& [dtype, op] : {std::pair{HVD_BOOL, HVD_MAX}, {HVD_INT8, HVD_BOR}}) {
        ReduceArgs args{&x, &x, 1, dtype, op};
        args.prescale = 0.5;
        const bool refused = ranks.Allreduce(args).code() == absl::StatusCode::kInvalidArgument;
        args.prescale = 1;
        if (!refused || !ranks.Allreduce(args).ok() || x != 1) return "not refused";
      }
      return "";
    });
    REQUIRE(complaint == "");
  });
}

void RunFusedAndAlone(World& world, hvd_dtype_t dtype) {
  const std::vector<size_t> counts = {100, 33333, 5, 60001};
  const FusedCase c{dtype, HVD_AVERAGE, counts, Memory::kApart, 0.3, 1.7};
  Tensors tensors(c, world.size());
  const std::string complaint = world.Run([&](Collectives& ranks) -> std::string {
    std::mt19937_64 random(ranks.rank());
    for (auto& tensor : tensors.inputs) {
      for (auto& byte : tensor[ranks.rank()]) byte = static_cast<unsigned char>(random());
    }
    const std::vector<ReducePart> parts = tensors.Parts(c, ranks.rank());
    if (absl::Status done = ranks.Allreduce(ArgsOf(c, parts)); !done.ok()) {
      return done.ToString();
    }
    for (const ReducePart& part : parts) {
      Bytes alone(part.count * DtypeBytes(dtype));
      ReduceArgs args = ArgsOf(c, {});
      args.input = part.input;
      args.output = alone.data();
      args.count = part.count;
      if (absl::Status done = ranks.Allreduce(args); !done.ok()) return done.ToString();
      if (memcmp(alone.data(), part.output, alone.size()) != 0) return "other bits";
    }
    return "";
  });
  REQUIRE(complaint == "");
  for (const auto& tensor : tensors.outputs) {
    for (const Bytes& output : tensor) REQUIRE((output == tensor[0]));
  }
}

TEST_CASE("fused: the same bits as one tensor alone") {
  std::vector<WorldMaker> makers = HostWorlds();
  for (WorldMaker& maker : DeterministicWorlds()) makers.push_back(std::move(maker));
  On(makers, [](World& world) {
    for (const hvd_dtype_t dtype :
         {HVD_FLOAT16, HVD_BFLOAT16, HVD_FLOAT32, HVD_FLOAT64, HVD_COMPLEX64}) {
      RunFusedAndAlone(world, dtype);
    }
  });
  On(AllWorlds(), [](World& world) {  // whose sums depend on no order
    for (const hvd_dtype_t dtype : {HVD_FLOAT8_E4M3FN, HVD_FLOAT8_E5M2}) {
      RunFusedAndAlone(world, dtype);
    }
  });
}

// Takes 4.3 GB: asked for by its tag.
TEST_CASE("more than 2^31 elements", "[.large]") {
  const size_t count = (size_t{1} << 31) + 12345;
  const std::unique_ptr<World> world = HostWorlds()[2]();
  REQUIRE(world->size() == 2);
  const std::string complaint = world->Run([&](Collectives& ranks) -> std::string {
    Bytes data(count, static_cast<unsigned char>(ranks.rank() + 1));
    data[count - 1] = 50;
    ReduceArgs args{data.data(), data.data(), count, HVD_UINT8, HVD_SUM};
    if (absl::Status done = ranks.Allreduce(args); !done.ok()) return done.ToString();
    return data[0] == 3 && data[count - 2] == 3 && data[count - 1] == 100 ? "" : "wrong";
  });
  REQUIRE(complaint == "");
}

}  // namespace
}  // namespace hvd::rt::test
