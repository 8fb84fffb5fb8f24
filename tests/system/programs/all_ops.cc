// SPDX-License-Identifier: Apache-2.0
// all_ops [arena|mixed]: checks every operation, reduction and type against its closed form, on
// every rank, with all tensors or some in memory of hvd_alloc; prints "all ops right" on each when
// they are.
#include <fenv.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/system/programs/all_ops.h"

namespace {

struct Reduction {
  hvd_op_t op;
  const char* name;
};
constexpr Reduction kReductions[] = {{HVD_SUM, "sum"},         {HVD_AVERAGE, "average"},
                                     {HVD_MIN, "min"},         {HVD_MAX, "max"},
                                     {HVD_PRODUCT, "product"}, {HVD_BAND, "bitwise and"},
                                     {HVD_BOR, "bitwise or"},  {HVD_BXOR, "bitwise exclusive or"}};

// Sizes with every kind of rest: none, one element, not a multiple of ranks or vectors, beyond a
// cache.
constexpr size_t kCounts[] = {0, 1, 3, 17, 1000, 100003};

void CheckAllreduce(const Dtype& dtype, const Reduction& reduction, size_t count, bool in_place) {
  const std::string what = std::string("allreduce ") + reduction.name + " " + dtype.name + " " +
                           std::to_string(count) + (in_place ? " in place" : "");
  Array input(dtype, {static_cast<int64_t>(count)});
  Array output(dtype, {static_cast<int64_t>(count)});
  for (size_t i = 0; i < count; ++i) input.Set(i, Value(dtype, hvd::rank(), i));
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.op = reduction.op;
  options.name = in_place ? what.c_str() : nullptr;
  const Array& result = in_place ? input : output;
  const hvd_status_t status = hvd_allreduce(input.tensor(), result.tensor(), &options);
  if (!Exists(dtype, reduction.op)) {
    const std::string why = status == HVD_ERR_INVALID ? hvd_last_error() : "was not refused";
    if (why.find(dtype.name) == std::string::npos) Fail(what + ": " + why);
    return;
  }
  Must(status, what);
  for (size_t i = 0; i < count; ++i) {
    const double wanted = Reduced(dtype, reduction.op, i);
    if (std::abs(result.Get(i) - wanted) > Tolerance(dtype, reduction.op) * std::abs(wanted)) {
      Fail(what + ": element " + std::to_string(i) + " is " + std::to_string(result.Get(i)) +
           ", must be " + std::to_string(wanted));
    }
    if (!in_place && input.Get(i) != Value(dtype, hvd::rank(), i)) Fail(what + " wrote its input");
  }
}

// Rank r gives (r * factor) % 5 rows of three: some give none.
void CheckAllgather(const Dtype& dtype, int64_t factor) {
  const auto rows = [factor](int rank) { return (rank + 1) * factor % 5 * factor; };
  const std::string what = std::string("allgather ") + dtype.name + " " + std::to_string(factor);
  Array input(dtype, {rows(hvd::rank()), 3});
  for (size_t i = 0; i < input.count(); ++i) input.Set(i, Value(dtype, hvd::rank(), i));
  hvd_tensor_t result = HVD_TENSOR_INIT;
  Must(hvd_allgather(input.tensor(), nullptr, nullptr, &result), what);
  int64_t all = 0;
  for (int rank = 0; rank < hvd::size(); ++rank) all += rows(rank);
  if (result.ndim != 2 || result.shape[0] != all || result.shape[1] != 3) Fail(what + ": shape");
  size_t at = 0;
  for (int rank = 0; rank < hvd::size(); ++rank) {
    for (size_t i = 0; i < static_cast<size_t>(rows(rank)) * 3; ++i, ++at) {
      const auto* element = static_cast<const unsigned char*>(result.data) + at * dtype.bytes;
      if (bench::Load(dtype, element) != Value(dtype, rank, i)) Fail(what + ": wrong value");
    }
  }
  hvd_free_result(&result);
}

void CheckBroadcast(const Dtype& dtype, int root, size_t count) {
  const std::string what = std::string("broadcast ") + dtype.name + " from " +
                           std::to_string(root) + " " + std::to_string(count);
  Array data(dtype, {static_cast<int64_t>(count)});
  for (size_t i = 0; i < count; ++i) data.Set(i, hvd::rank() == root ? Value(dtype, root, i) : 0);
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.root = root;
  Must(hvd_broadcast(data.tensor(), data.tensor(), &options), what);
  for (size_t i = 0; i < count; ++i) {
    if (data.Get(i) != Value(dtype, root, i)) Fail(what + ": wrong value");
  }
}

// Many at once, submitted by each rank in another order, waited for in yet another.
void CheckAsync() {
  constexpr int kTensors = 50;
  std::vector<std::vector<float>> data(kTensors);
  std::vector<hvd::Handle> handles(kTensors);
  for (int k = 0; k < kTensors; ++k) {
    const int i = (k * 7 + hvd::rank() * 13) % kTensors;
    data[i].assign(static_cast<size_t>(i) * 100 + 1, static_cast<float>(hvd::rank() + i));
    handles[i] = hvd::allreduce_async(data[i], hvd::Op::kSum, "async." + std::to_string(i));
  }
  for (int i = 0; i < kTensors; ++i) {
    handles[i].wait();
    const float wanted =
        hvd::size() * (hvd::size() - 1) / 2.0f + static_cast<float>(hvd::size() * i);
    for (const float value : data[i]) {
      if (value != wanted) Fail("async " + std::to_string(i) + ": wrong value");
    }
  }
}

void CheckDtype(const Dtype& dtype) {
  for (const size_t count : kCounts) {
    for (const Reduction& reduction : kReductions) {
      CheckAllreduce(dtype, reduction, count, true);
      CheckAllreduce(dtype, reduction, count, false);
    }
    CheckBroadcast(dtype, static_cast<int>(count) % hvd::size(), count);
  }
  for (const int64_t factor : {1, 2, 3, 501}) CheckAllgather(dtype, factor);
  for (int root = 0; root < hvd::size(); ++root) CheckBroadcast(dtype, root, 12345);
  CheckScattered(dtype);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string memory = argc > 1 ? argv[1] : "";
  if (memory == "arena") array_memory = ArrayMemory::kArena;
  if (memory == "mixed") array_memory = ArrayMemory::kMixed;
  try {
    // hvd's threads must not inherit what this one traps.
    feenableexcept(FE_OVERFLOW | FE_INVALID | FE_DIVBYZERO);
    hvd::Session session;
    fedisableexcept(FE_ALL_EXCEPT);
    for (const Dtype& dtype : bench::Dtypes()) CheckDtype(dtype);
    // Large enough for the ways of large tensors, and with a rest.
    for (const bool in_place : {true, false}) {
      CheckAllreduce(bench::Dtypes().front(), kReductions[0], 3000003, in_place);
    }
    for (const size_t count : {3000003, 6000001}) CheckBroadcast(bench::Dtypes().front(), 0, count);
    CheckAllgather(bench::Dtypes().front(), 1000003);
    CheckAsync();
    CheckGroups();
    CheckOptions();
    CheckAdasum();
    CheckProcessSets();
    hvd::barrier();
    std::printf("all ops right on rank %d of %d\n", hvd::rank(), hvd::size());
  } catch (const hvd::Error& error) {
    std::fprintf(stderr, "all_ops: %s\n", error.what());
    return 1;
  }
  return 0;
}
