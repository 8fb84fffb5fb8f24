// SPDX-License-Identifier: Apache-2.0
// A scale of 16-bit floats gives bit for bit what the program's own multiplication would: of the
// inputs (prescale) or of the result (postscale). On every way.
#include <catch2/catch.hpp>
#include <random>

#include "absl/strings/str_cat.h"
#include "runtime/collective/reduction_rules.h"
#include "tests/runtime/collective/numbers.h"
#include "tests/runtime/collective/worlds.h"

namespace hvd::rt::test {
namespace {

using Numbers = std::vector<uint16_t>;

struct Scales {
  double before = 1;
  double after = 1;
};

struct Kind {
  hvd_dtype_t dtype;
  hvd_op_t op;
};

// Near 1, and of one sign where they are divided, so that nothing leaves the type's normal numbers.
Numbers RandomNumbers(const Kind& kind, size_t count, int seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> size(0.5, 2);
  const double other = kind.op == HVD_AVERAGE ? 1 : -1;
  Numbers numbers(count);
  for (uint16_t& number : numbers) {
    Encode(kind.dtype, size(random) * (random() % 2 == 0 ? 1 : other), &number);
  }
  return numbers;
}

Numbers Multiplied(hvd_dtype_t dtype, Numbers numbers, double by) {
  for (uint16_t& number : numbers) {
    const float product = static_cast<float>(Decode(dtype, &number)) * static_cast<float>(by);
    Encode(dtype, product, &number);
  }
  return numbers;
}

absl::Status Reduce(Collectives& ranks, const Kind& kind, const Scales& scales,
                    const Numbers& input, Numbers* output) {
  *output = Numbers(input.size());
  ReduceArgs args;
  args.input = input.data();
  args.output = output->data();
  args.count = input.size();
  args.dtype = kind.dtype;
  args.op = kind.op;
  args.prescale = scales.before;
  args.postscale = scales.after;
  return ranks.Allreduce(args);
}

// The rank's share of as many elements for each.
absl::Status Scatter(Collectives& ranks, const Kind& kind, const Scales& scales,
                     const Numbers& input, Numbers* output) {
  const size_t each = input.size() / ranks.size();
  const std::vector<size_t> counts(ranks.size(), each);
  *output = Numbers(each);
  ReduceScatterArgs args;
  args.input = input.data();
  args.output = output->data();
  args.count_by_rank = counts;
  args.dtype = kind.dtype;
  args.op = kind.op;
  args.prescale = scales.before;
  args.postscale = scales.after;
  return ranks.ReduceScatter(args);
}

std::string Compare(const std::string& what, const Numbers& got, const Numbers& want) {
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] != want[i]) {
      return absl::StrCat(what, ": element ", i, " is ", got[i], ", not ", want[i]);
    }
  }
  return "";
}

// `reduce` is Reduce or Scatter.
template <class Call>
std::string Check(Collectives& ranks, const Kind& kind, size_t count, const Call& reduce) {
  const Numbers input = RandomNumbers(kind, count * ranks.size(), ranks.rank() + 1);
  const Numbers multiplied = Multiplied(kind.dtype, input, 0.7);
  Numbers plain, after, before, own, both;
  absl::Status done = reduce(ranks, kind, {}, input, &plain);
  done.Update(reduce(ranks, kind, {1, 0.3}, input, &after));
  done.Update(reduce(ranks, kind, {0.7, 1}, input, &before));
  done.Update(reduce(ranks, kind, {}, multiplied, &own));
  done.Update(reduce(ranks, kind, {0.7, -1.7}, input, &both));
  if (!done.ok()) return done.ToString();
  std::string wrong = Compare("postscale", after, Multiplied(kind.dtype, plain, 0.3));
  if (wrong.empty()) wrong = Compare("prescale", before, own);
  if (wrong.empty()) wrong = Compare("both", both, Multiplied(kind.dtype, own, -1.7));
  return wrong;
}

TEST_CASE("a scale of 16-bit floats is the program's own multiplication") {
  for (const WorldMaker& make : AllWorlds()) {
    const std::unique_ptr<World> world = make();
    INFO(world->name());
    for (const hvd_dtype_t dtype : {HVD_FLOAT16, HVD_BFLOAT16}) {
      for (const hvd_op_t op : {HVD_SUM, HVD_AVERAGE, HVD_MIN, HVD_MAX, HVD_PRODUCT}) {
        for (const size_t count : {1, 37, 12001}) {
          INFO("dtype " << dtype << " op " << op << " count " << count);
          const Kind kind{dtype, op};
          const std::string complaint = world->Run([&](Collectives& ranks) {
            const std::string wrong = Check(ranks, kind, count, Reduce);
            return wrong.empty() ? Check(ranks, kind, count, Scatter) : wrong;
          });
          REQUIRE(complaint == "");
        }
      }
    }
  }
}

}  // namespace
}  // namespace hvd::rt::test
