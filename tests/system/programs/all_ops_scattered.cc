// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter with uneven rows, and alltoall with splits and without.
#include <algorithm>

#include "tests/system/programs/all_ops.h"

namespace {

double LoadAt(const Dtype& dtype, const hvd_tensor_t& tensor, size_t i) {
  return bench::Load(dtype, static_cast<const unsigned char*>(tensor.data) + i * dtype.bytes);
}

void CheckReduceScatter(const Dtype& dtype, hvd_op_t op, int64_t rows) {
  const std::string what =
      std::string("reduce-scatter ") + dtype.name + " of " + std::to_string(rows) + " rows";
  Array input(dtype, {rows, 3});
  for (size_t i = 0; i < input.count(); ++i) input.Set(i, Value(dtype, hvd::rank(), i));
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.op = op;
  hvd_tensor_t result = HVD_TENSOR_INIT;
  Must(hvd_reducescatter(input.tensor(), nullptr, &options, &result), what);
  const int64_t each = rows / hvd::size(), more = rows % hvd::size();
  const int64_t mine = each + (hvd::rank() < more ? 1 : 0);
  const int64_t first = each * hvd::rank() + std::min<int64_t>(hvd::rank(), more);
  if (result.ndim != 2 || result.shape[0] != mine || result.shape[1] != 3) Fail(what + ": shape");
  for (size_t i = 0; i < static_cast<size_t>(mine) * 3; ++i) {
    const double wanted = Reduced(dtype, op, static_cast<size_t>(first) * 3 + i);
    const double got = LoadAt(dtype, result, i);
    if (std::abs(got - wanted) > Tolerance(dtype, op) * std::abs(wanted)) {
      Fail(what + ": element " + std::to_string(i) + " is " + std::to_string(got) + ", must be " +
           std::to_string(wanted));
    }
  }
  // The same into memory of ours, asynchronously.
  Array output(dtype, {mine, 3});
  hvd_handle_t handle = 0;
  Must(hvd_reducescatter_async(input.tensor(), output.tensor(), &options, &handle), what);
  Must(hvd_wait(handle), what);
  for (size_t i = 0; i < output.count(); ++i) {
    if (output.Get(i) != LoadAt(dtype, result, i)) Fail(what + ": other with an output");
  }
  hvd_free_result(&result);
}

// Rank r sends (r + p) % 4 * factor rows to rank p; one row of its input goes nowhere.
int64_t RowsFor(int from, int to, int64_t factor) { return (from + to) % 4 * factor; }

void CheckAlltoall(const Dtype& dtype, int64_t factor) {
  const std::string what = std::string("alltoall ") + dtype.name + " " + std::to_string(factor);
  std::vector<int64_t> splits, received(static_cast<size_t>(hvd::size()), -1);
  int64_t rows = 1;
  for (int peer = 0; peer < hvd::size(); ++peer) {
    splits.push_back(RowsFor(hvd::rank(), peer, factor));
    rows += splits.back();
  }
  Array input(dtype, {rows, 2});
  for (size_t i = 0; i < input.count(); ++i) input.Set(i, Value(dtype, hvd::rank(), i));
  hvd_tensor_t result = HVD_TENSOR_INIT;
  Must(hvd_alltoall(input.tensor(), splits.data(), hvd::size(), nullptr, nullptr, &result,
                    received.data()),
       what);
  size_t at = 0;
  for (int peer = 0; peer < hvd::size(); ++peer) {
    if (received[static_cast<size_t>(peer)] != RowsFor(peer, hvd::rank(), factor)) {
      Fail(what + ": received splits");
    }
    size_t before = 0;
    for (int p = 0; p < hvd::rank(); ++p)
      before += 2 * static_cast<size_t>(RowsFor(peer, p, factor));
    for (int64_t i = 0; i < 2 * RowsFor(peer, hvd::rank(), factor); ++i, ++at) {
      if (LoadAt(dtype, result, at) != Value(dtype, peer, before + static_cast<size_t>(i))) {
        Fail(what + ": wrong value from rank " + std::to_string(peer));
      }
    }
  }
  if (result.shape[0] * 2 != static_cast<int64_t>(at)) Fail(what + ": rows");
  hvd_free_result(&result);
}

void CheckEvenAlltoall(const Dtype& dtype) {
  Array input(dtype, {3 * hvd::size()}), output(dtype, {3 * hvd::size()});
  for (size_t i = 0; i < input.count(); ++i) input.Set(i, Value(dtype, hvd::rank(), i));
  hvd_handle_t handle = 0;
  Must(hvd_alltoall_async(input.tensor(), nullptr, 0, output.tensor(), nullptr, &handle), "even");
  std::vector<int64_t> received(static_cast<size_t>(hvd::size()));
  Must(hvd_wait_alltoall(handle, nullptr, received.data()), "even alltoall");
  for (size_t i = 0; i < output.count(); ++i) {
    const auto from = static_cast<int>(i / 3);
    const size_t there = static_cast<size_t>(hvd::rank()) * 3 + i % 3;
    if (output.Get(i) != Value(dtype, from, there)) Fail("even alltoall: wrong value");
    if (received[i / 3] != 3) Fail("even alltoall: received splits");
  }
}

}  // namespace

void CheckScattered(const Dtype& dtype) {
  for (const int64_t rows : {0, 1, 5, 100, 40001}) CheckReduceScatter(dtype, HVD_SUM, rows);
  if (dtype.code != HVD_BOOL) CheckReduceScatter(dtype, HVD_AVERAGE, 77);
  for (const int64_t factor : {0, 1, 33, 5000}) CheckAlltoall(dtype, factor);
  CheckEvenAlltoall(dtype);
}
