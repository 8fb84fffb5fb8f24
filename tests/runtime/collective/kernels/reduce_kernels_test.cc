// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/kernels/reduce_kernels.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "runtime/collective/collectives.h"
#include "tests/runtime/collective/numbers.h"

namespace hvd::rt {
namespace {

using Bytes = std::vector<unsigned char>;

std::vector<KernelLevel> Levels() {
  std::vector<KernelLevel> levels;
  for (const KernelLevel level :
       {KernelLevel::kBaseline, KernelLevel::kAvx2, KernelLevel::kAvx512}) {
    if (level <= BestKernelLevel()) levels.push_back(level);
  }
  return levels;
}

struct Case {
  hvd_dtype_t dtype;
  hvd_op_t op;
  size_t count;
  size_t misalignment = 0;
  int divisor = 1;
  double prescale = 1;
  double postscale = 1;
};

// Runs the kernel with every source and destination `misalignment` bytes off, and checks that
// nothing beside the result was written.
Bytes Run(const Case& c, const std::vector<Bytes>& inputs, KernelLevel level) {
  const size_t bytes = c.count * DtypeBytes(c.dtype);
  std::vector<Bytes> placed;
  for (const Bytes& input : inputs) {
    placed.emplace_back(c.misalignment);
    placed.back().insert(placed.back().end(), input.begin(), input.end());
  }
  std::vector<const void*> sources;
  for (const Bytes& place : placed) sources.push_back(place.data() + c.misalignment);
  Bytes out[2] = {Bytes(c.misalignment + bytes + 64, 0xa5),
                  Bytes(c.misalignment + bytes + 64, 0xa5)};
  void* destinations[2] = {out[0].data() + c.misalignment, out[1].data() + c.misalignment};
  FindReduceKernel(c.dtype, c.op, level)({.sources = sources.data(),
                                          .source_count = static_cast<int>(sources.size()),
                                          .destinations = destinations,
                                          .destination_count = 2,
                                          .count = c.count,
                                          .divisor = c.divisor,
                                          .prescale = c.prescale,
                                          .postscale = c.postscale});
  REQUIRE((out[0] == out[1]));
  for (size_t i = 0; i < c.misalignment; ++i) REQUIRE(out[0][i] == 0xa5);
  for (size_t i = c.misalignment + bytes; i < out[0].size(); ++i) REQUIRE(out[0][i] == 0xa5);
  return {out[0].begin() + c.misalignment, out[0].begin() + c.misalignment + bytes};
}

std::vector<Bytes> RandomBytes(int sources, size_t bytes, int seed) {
  std::mt19937_64 random(seed);
  std::vector<Bytes> inputs(sources, Bytes(bytes));
  for (Bytes& input : inputs) {
    for (auto& byte : input) byte = static_cast<unsigned char>(random());
  }
  return inputs;
}

TEST_CASE("kernels give what plain arithmetic gives") {
  for (const hvd_dtype_t dtype : test::kAllDtypes) {
    for (const hvd_op_t op : test::kAllOps) {
      if (!test::Exists(dtype, op)) continue;
      for (const int sources : {1, 2, 3, 5}) {
        const size_t count = 331;
        const size_t width = DtypeBytes(dtype);
        std::vector<Bytes> inputs(sources, Bytes(count * width));
        std::vector<std::vector<double>> values(count);
        for (size_t i = 0; i < count; ++i) {
          for (int s = 0; s < sources; ++s) {
            const int bias = test::IsSigned(dtype) ? 3 : 0;
            const double value = static_cast<double>((i * 5 + s * 11 + i * s) % 7) - bias;
            test::Encode(dtype, value, inputs[s].data() + i * width);
            values[i].push_back(value);
          }
        }
        const int divisor = op == HVD_AVERAGE ? sources : 1;
        for (const KernelLevel level : Levels()) {
          const Bytes out = Run({dtype, op, count, 0, divisor}, inputs, level);
          for (size_t i = 0; i < count; ++i) {
            INFO("dtype " << dtype << " op " << op << " sources " << sources << " element " << i
                          << " " << KernelLevelName(level));
            // -3^5 does not fit int8: it wraps.
            double want = test::Expected(dtype, op, values[i]);
            if (dtype == HVD_INT8) want = static_cast<int8_t>(static_cast<int64_t>(want));
            if (dtype == HVD_UINT8) want = static_cast<uint8_t>(static_cast<int64_t>(want));
            REQUIRE(test::Decode(dtype, out.data() + i * width) == want);
          }
        }
      }
    }
  }
}

TEST_CASE("all levels, alignments and lengths give the same bits, NaN and denormals included") {
  for (const hvd_dtype_t dtype : test::kAllDtypes) {
    for (const hvd_op_t op : test::kAllOps) {
      if (!test::Exists(dtype, op)) continue;
      const size_t width = DtypeBytes(dtype);
      const size_t most =
          1120;  // from 1024 on a kernel begins with what comes before a whole vector
      const std::vector<Bytes> inputs = RandomBytes(3, most * width, dtype * 10 + op);
      for (const double postscale : {1.0, test::IsScalable(dtype, op) ? 1.7 : 1.0}) {
        const double prescale = postscale == 1 ? 1 : 0.3;
        const Case scaled{dtype, op, most, 0, postscale == 1 ? 3 : 4, prescale, postscale};
        const Bytes whole = Run(scaled, inputs, KernelLevel::kBaseline);
        for (const KernelLevel level : Levels()) {
          for (const size_t misalignment : {0, 1, 2, 4, 7, 16, 40}) {
            for (size_t count = 0; count <= most; count += count < 70    ? 1
                                                           : count < 300 ? 23
                                                                         : 205) {
              INFO("dtype " << dtype << " op " << op << " count " << count << " off "
                            << misalignment << " scaled " << postscale << " "
                            << KernelLevelName(level));
              std::vector<Bytes> parts;
              for (const Bytes& input : inputs) {
                parts.emplace_back(input.end() - count * width, input.end());
              }
              Case part = scaled;
              part.count = count;
              part.misalignment = misalignment;
              const Bytes out = Run(part, parts, level);
              REQUIRE((out == Bytes(whole.end() - count * width, whole.end())));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("scales: integers are truncated, keep to int64's ends and wrap from there") {
  const std::vector<int32_t> a = {7, -7, INT32_MAX, 0};
  const std::vector<int32_t> b = {4, -4, INT32_MAX, 0};
  const void* sources[2] = {a.data(), b.data()};
  for (const KernelLevel level : Levels()) {
    std::vector<int32_t> out(a.size());
    void* destination = out.data();
    ReduceTask task{sources, 2, &destination, 1, a.size()};
    task.prescale = 0.5;   // 3 + 2, -3 - 2
    task.postscale = 0.7;  // 3.5, -3.5
    FindReduceKernel(HVD_INT32, HVD_SUM, level)(task);
    CHECK(out == std::vector<int32_t>{3, -3, 1503238552, 0});
    task.prescale = 1;
    task.postscale = 1e300;
    FindReduceKernel(HVD_INT32, HVD_MAX, level)(task);
    CHECK(out == std::vector<int32_t>{-1, 0, -1, 0});
  }
}

TEST_CASE("16-bit floats are summed in float32 and rounded once, to nearest even") {
  for (const hvd_dtype_t dtype : {HVD_FLOAT16, HVD_BFLOAT16}) {
    const size_t count = 65536;
    std::vector<Bytes> inputs = RandomBytes(2, count * 2, 7);
    for (size_t i = 0; i < count; ++i) {
      const auto every = static_cast<uint16_t>(i);  // every pattern once
      memcpy(inputs[0].data() + 2 * i, &every, 2);
    }
    const Bytes out = Run({dtype, HVD_SUM, count}, inputs, BestKernelLevel());
    for (size_t i = 0; i < count; ++i) {
      const auto a = static_cast<float>(test::Decode(dtype, inputs[0].data() + 2 * i));
      const auto b = static_cast<float>(test::Decode(dtype, inputs[1].data() + 2 * i));
      unsigned char want[8] = {};
      test::Encode(dtype, a + b, want);
      INFO("dtype " << dtype << " " << a << " + " << b);
      if (std::isnan(a + b)) {
        REQUIRE(std::isnan(test::Decode(dtype, out.data() + 2 * i)));
      } else {
        REQUIRE(memcmp(want, out.data() + 2 * i, 2) == 0);
      }
    }
  }
}

TEST_CASE("minimum and maximum propagate NaN from any place and keep the first of equals") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::vector<float>> rows = {{1, nan, 2, 0.0f, 5}, {nan, 1, 2, -0.0f, 4}};
  std::vector<Bytes> inputs;
  for (const auto& row : rows) {
    const auto* raw = reinterpret_cast<const unsigned char*>(row.data());
    inputs.emplace_back(raw, raw + row.size() * 4);
  }
  for (const KernelLevel level : Levels()) {
    for (const hvd_op_t op : {HVD_MIN, HVD_MAX}) {
      const Bytes out = Run({HVD_FLOAT32, op, 5}, inputs, level);
      float got[5];
      memcpy(got, out.data(), sizeof(got));
      CHECK(std::isnan(got[0]));
      CHECK(std::isnan(got[1]));
      CHECK(got[2] == 2);
      CHECK_FALSE(std::signbit(got[3]));
      CHECK(got[4] == (op == HVD_MIN ? 4 : 5));
    }
  }
}

TEST_CASE("a destination may be a source") {
  for (const KernelLevel level : Levels()) {
    std::vector<int32_t> a(1001, 3);
    const std::vector<int32_t> b(1001, 4);
    const void* sources[2] = {a.data(), b.data()};
    void* destination = a.data();
    FindReduceKernel(HVD_INT32, HVD_SUM, level)({sources, 2, &destination, 1, a.size(), 1});
    CHECK(a == std::vector<int32_t>(1001, 7));
  }
}

TEST_CASE("scales: an uint64 keeps what no int64 holds") {
  const std::vector<uint64_t> a = {uint64_t{1} << 63, UINT64_MAX, 7, 0};
  const void* source = a.data();
  std::vector<uint64_t> out(a.size());
  void* destination = out.data();
  ReduceTask task{&source, 1, &destination, 1, a.size()};
  task.postscale = 1.5;
  for (const hvd_op_t op : {HVD_MAX, HVD_SUM, HVD_AVERAGE}) {
    FindReduceKernel(HVD_UINT64, op, BestKernelLevel())(task);
    CHECK(out == std::vector<uint64_t>{uint64_t{3} << 62, UINT64_MAX, 10, 0});
  }
  task.postscale = -1;  // wraps
  FindReduceKernel(HVD_UINT64, HVD_MIN, BestKernelLevel())(task);
  CHECK(out[2] == UINT64_MAX - 6);
}

TEST_CASE("sums and products of unsigned integers wrap") {
  const uint16_t a[] = {65535, 300}, b[] = {65535, 300};
  const void* sources[] = {a, b};
  uint16_t out[2] = {};
  void* destination = out;
  const ReduceTask task{sources, 2, &destination, 1, 2};
  FindReduceKernel(HVD_UINT16, HVD_PRODUCT, BestKernelLevel())(task);
  CHECK(out[0] == 1);
  CHECK(out[1] == 90000 - 65536);
  FindReduceKernel(HVD_UINT16, HVD_SUM, BestKernelLevel())(task);
  CHECK(out[0] == 65534);
}

TEST_CASE("there is a kernel for every reduction, and for no other") {
  for (const KernelLevel level : Levels()) {
    for (const hvd_dtype_t dtype : test::kAllDtypes) {
      CHECK(FindReduceKernel(dtype, HVD_ADASUM, level) == nullptr);
      for (const hvd_op_t op : test::kAllOps) {
        CHECK((FindReduceKernel(dtype, op, level) != nullptr) == test::Exists(dtype, op));
      }
    }
  }
}

}  // namespace
}  // namespace hvd::rt
