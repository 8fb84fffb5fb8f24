// SPDX-License-Identifier: Apache-2.0
// Groups, names, scales, compression and Adasum.
#include <fenv.h>

#include <cstring>
#include <memory>

#include "tests/system/programs/all_ops.h"

namespace {

Dtype Named(const char* name) { return *bench::FindDtype(name); }

// Tensors of several types at once; those of one type are reduced as one.
struct Group {
  std::vector<std::unique_ptr<Array>> arrays;
  std::vector<Dtype> dtypes;
  std::vector<hvd_tensor_t> tensors;

  void Add(const Dtype& dtype, std::vector<int64_t> shape) {
    Array& array = *arrays.emplace_back(std::make_unique<Array>(dtype, std::move(shape)));
    dtypes.push_back(dtype);
    for (size_t i = 0; i < array.count(); ++i) array.Set(i, Value(dtype, hvd::rank(), i));
    tensors.push_back(*array.tensor());
  }
  int32_t size() const { return static_cast<int32_t>(arrays.size()); }
};

Group Mixed(int64_t rows) {
  Group group;
  for (const char* name : {"float32", "int64", "float16", "float32", "uint8", "bfloat16"}) {
    group.Add(Named(name), {rows + static_cast<int64_t>(group.arrays.size()), 3});
  }
  for (int i = 0; i < 20; ++i) group.Add(Named("float32"), {1 + i * 50});
  return group;
}

void CheckGroupedAllreduce(bool async) {
  Group group = Mixed(100);
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.op = HVD_SUM;
  options.name = async ? "group" : nullptr;
  if (async) {
    hvd_handle_t handle = 0;
    Must(
        hvd_grouped_allreduce_async(group.tensors.data(), nullptr, group.size(), &options, &handle),
        "grouped allreduce");
    Must(hvd_wait(handle), "grouped allreduce");
  } else {
    Must(hvd_grouped_allreduce(group.tensors.data(), nullptr, group.size(), &options),
         "grouped allreduce");
  }
  for (size_t t = 0; t < group.arrays.size(); ++t) {
    for (size_t i = 0; i < group.arrays[t]->count(); ++i) {
      if (group.arrays[t]->Get(i) != Reduced(group.dtypes[t], HVD_SUM, i)) {
        Fail("grouped allreduce: tensor " + std::to_string(t) + " is wrong");
      }
    }
  }
}

void CheckGroupedAllgather() {
  Group group = Mixed(hvd::rank());
  std::vector<hvd_tensor_t> results(group.tensors.size(), HVD_TENSOR_INIT);
  hvd_handle_t handle = 0;
  Must(hvd_grouped_allgather_async(group.tensors.data(), nullptr, group.size(), nullptr, &handle),
       "grouped allgather");
  Must(hvd_wait_results(handle, results.data(), group.size()), "grouped allgather");
  for (size_t t = 0; t < 6; ++t) {
    const auto* at = static_cast<const unsigned char*>(results[t].data);
    int64_t rows = 0;
    for (int rank = 0; rank < hvd::size(); ++rank) {
      const int64_t from_rank = rank + static_cast<int64_t>(t);
      rows += from_rank;
      for (size_t i = 0; i < static_cast<size_t>(from_rank) * 3; ++i, at += group.dtypes[t].bytes) {
        if (bench::Load(group.dtypes[t], at) != Value(group.dtypes[t], rank, i)) {
          Fail("grouped allgather: tensor " + std::to_string(t) + " is wrong");
        }
      }
    }
    if (results[t].shape[0] != rows) Fail("grouped allgather: rows");
  }
  for (hvd_tensor_t& result : results) hvd_free_result(&result);
}

void CheckGroupedReduceScatter() {
  Group group = Mixed(7);
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.op = HVD_SUM;
  std::vector<hvd_tensor_t> results(group.tensors.size(), HVD_TENSOR_INIT);
  Must(hvd_grouped_reducescatter(group.tensors.data(), nullptr, group.size(), &options,
                                 results.data()),
       "grouped reduce-scatter");
  for (size_t t = 0; t < results.size(); ++t) {
    const int64_t rows = group.tensors[t].shape[0];
    const int64_t each = rows / hvd::size(), more = rows % hvd::size();
    const int64_t row_elements = group.tensors[t].ndim > 1 ? group.tensors[t].shape[1] : 1;
    const int64_t first = each * hvd::rank() + std::min<int64_t>(hvd::rank(), more);
    for (int64_t i = 0; i < results[t].shape[0] * row_elements; ++i) {
      const auto* at = static_cast<const unsigned char*>(results[t].data) +
                       static_cast<size_t>(i) * group.dtypes[t].bytes;
      const double wanted =
          Reduced(group.dtypes[t], HVD_SUM, static_cast<size_t>(first * row_elements + i));
      if (bench::Load(group.dtypes[t], at) != wanted) Fail("grouped reduce-scatter: wrong value");
    }
    hvd_free_result(&results[t]);
  }
}

// Values that every type and scale hold exactly.
void CheckScale(const char* name, size_t count) {
  const Dtype dtype = Named(name);
  Array data(dtype, {static_cast<int64_t>(count)});
  for (size_t i = 0; i < count; ++i) data.Set(i, 4 * Value(dtype, hvd::rank(), i));
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.op = HVD_SUM;
  options.prescale = 0.5;
  options.postscale = 2;
  Must(hvd_allreduce(data.tensor(), data.tensor(), &options), "scaled");
  for (size_t i = 0; i < count; ++i) {
    if (data.Get(i) != 4 * Reduced(dtype, HVD_SUM, i)) {
      Fail(std::string("scaled ") + name + ": " + std::to_string(data.Get(i)));
    }
  }
}

// Threes, minus threes and fives of every rank, halved, summed and multiplied: what integers make
// of it is truncated towards zero at each step.
void CheckIntegerScale(const char* name, size_t count) {
  const Dtype dtype = Named(name);
  const double sign = IsSigned(dtype) ? -1 : 1;
  const double values[] = {3, sign * 3, 5}, halves[] = {1, sign, 2};
  for (const hvd_op_t op : {HVD_SUM, HVD_AVERAGE}) {
    Array data(dtype, {static_cast<int64_t>(count)});
    for (size_t i = 0; i < count; ++i) data.Set(i, values[i % 3]);
    hvd_options_t options = HVD_OPTIONS_INIT;
    options.op = op;
    options.prescale = 0.5;
    options.postscale = 1.75;
    Must(hvd_allreduce(data.tensor(), data.tensor(), &options), "scaled integers");
    const double ranks = op == HVD_SUM ? hvd::size() : 1;
    for (size_t i = 0; i < count; ++i) {
      if (data.Get(i) != std::trunc(halves[i % 3] * ranks * 1.75)) {
        Fail(std::string("scaled ") + name + ": " + std::to_string(data.Get(i)));
      }
    }
  }
}

// Half of the ranks submit them the other way round.
void CheckNamesWithoutOp() {
  std::vector<float> sizes(10, static_cast<float>(hvd::rank())), ones(10, 1);
  const bool turned = hvd::rank() % 2 == 1;
  hvd::Handle first = turned ? hvd::allreduce_async(ones, "ones") : hvd::Handle();
  hvd::Handle second = hvd::allreduce_async(sizes, "ranks");
  if (!turned) first = hvd::allreduce_async(ones, "ones");
  first.wait();
  second.wait();
  if (ones[9] != 1) Fail("a name without an op: the average of ones");
  if (sizes[9] != static_cast<float>(hvd::size() - 1) / 2) Fail("a name without an op: of ranks");
}

void CheckCompression(const char* name, hvd_compression_t compression, size_t count) {
  const Dtype dtype = Named(name);
  Array data(dtype, {static_cast<int64_t>(count)});
  for (size_t i = 0; i < count; ++i) data.Set(i, Value(dtype, hvd::rank(), i) + 1.0 / 4096);
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.op = HVD_SUM;
  options.compression = compression;
  Must(hvd_allreduce(data.tensor(), data.tensor(), &options), "compressed");
  // 1/4096 is less than a unit of the last place of 1 and 2 in 16 bits.
  for (size_t i = 0; i < count; ++i) {
    const double wanted = Reduced(dtype, HVD_SUM, i);
    if (std::abs(data.Get(i) - wanted) > 0.001 * hvd::size()) {
      Fail(std::string("compressed ") + name + ": " + std::to_string(data.Get(i)) + ", must be " +
           std::to_string(wanted));
    }
    if (data.Get(i) == wanted + hvd::size() / 4096.0) Fail("what must be compressed was not");
  }
}

// A value that every rank has everywhere, and what an allreduce makes of it, where a sum on the way
// would overflow.
struct Extreme {
  const char* dtype;
  hvd_op_t op;
  double value;
  double prescale;
  double postscale;
  hvd_compression_t compression;
  double wanted;
};

void CheckExtreme(const Extreme& extreme, size_t count) {
  const Dtype dtype = Named(extreme.dtype);
  const auto elements = static_cast<int64_t>(count);
  Array data(dtype, {elements}), apart(dtype, {elements});
  for (size_t i = 0; i < count; ++i) data.Set(i, extreme.value);
  for (size_t i = 0; i < count; ++i) apart.Set(i, extreme.value);
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.op = extreme.op;
  options.prescale = extreme.prescale;
  options.postscale = extreme.postscale;
  options.compression = extreme.compression;
  hvd_tensor_t part = HVD_TENSOR_INIT;
  Must(hvd_reducescatter(data.tensor(), nullptr, &options, &part), "extreme reduce-scatter");
  const hvd_tensor_t both[] = {*data.tensor(), *apart.tensor()};
  const bool grouped = count == 1000;
  Must(grouped ? hvd_grouped_allreduce(both, nullptr, 2, &options)
               : hvd_allreduce(data.tensor(), data.tensor(), &options),
       "extreme");
  const auto must_be = [&](double got) {
    if (std::abs(got - extreme.wanted) <= 0.01 * std::abs(extreme.wanted)) return;
    Fail(std::string("extreme ") + extreme.dtype + " " + std::to_string(extreme.value) + ": " +
         std::to_string(got));
  };
  for (size_t i = 0; i < count; ++i) must_be(data.Get(i));
  for (int64_t i = 0; i < part.shape[0]; ++i) {
    must_be(bench::Load(dtype, static_cast<const unsigned char*>(part.data) +
                                   static_cast<size_t>(i) * dtype.bytes));
  }
  hvd_free_result(&part);
}

void CheckExtremes(size_t count) {
  const double each = 1.0 / hvd::size();
  const hvd_compression_t none = HVD_COMPRESSION_NONE, fp16 = HVD_COMPRESSION_FP16;
  for (const Extreme& extreme : {
           Extreme{"float32", HVD_SUM, 3e38, each, 1, none, 3e38},
           {"float64", HVD_SUM, 1.7e308, each, 1, none, 1.7e308},
           {"bfloat16", HVD_SUM, 3e38, each, 1, none, 3e38},
           {"float16", HVD_SUM, 60000, each, 1, none, 60000},
           {"float32", HVD_AVERAGE, 1e9, 1e-6, 1e6, fp16, 1e9},
           {"float32", HVD_AVERAGE, 40000, 1, 1, fp16, 40000},
           {"uint8", HVD_AVERAGE, 200, 1, 1, none, 200},
           {"int16", HVD_AVERAGE, -20000, 1, 1, none, -20000},
           {"int32", HVD_AVERAGE, 2e9, 1, 1, none, 2e9},
           {"int64", HVD_AVERAGE, 9e18, 1, 1, none, 9e18},
           {"float16", HVD_AVERAGE, 40000, 1, 1, none, 40000},
           {"uint16", HVD_AVERAGE, 60000, 1, 1, none, 60000},
           {"uint32", HVD_AVERAGE, 4e9, 1, 1, none, 4e9},
           {"uint64", HVD_AVERAGE, 1.6e19, 1, 1, none, 1.6e19},
           {"uint64", HVD_MAX, 1.6e19, 0.75, 1, none, 1.2e19},
           {"float8_e4m3fn", HVD_AVERAGE, 448, 1, 1, fp16, 448},
           {"float8_e5m2", HVD_SUM, 49152, each, 1, none, 49152},
           {"complex64", HVD_SUM, 3e38, each, 1, none, 3e38},
       }) {
    CheckExtreme(extreme, count);
  }
  Array same(Named("float32"), {static_cast<int64_t>(count)});
  for (size_t i = 0; i < count; ++i) same.Set(i, 1e9);
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.op = HVD_ADASUM;
  options.prescale = 1e-6;
  options.postscale = 1e6;
  options.compression = fp16;
  Must(hvd_allreduce(same.tensor(), same.tensor(), &options), "extreme adasum");
  if (std::abs(same.Get(count - 1) - 1e9) > 1e7) Fail("adasum scaled after it was compressed");
}

// Ranks that round in other ways and trap what overflows get the same bits, and no signal: whether
// their own thread does the work or hvd's, whose rules are not the program's.
void CheckOddFloats(size_t count) {
  const bool odd = hvd::rank() % 2 == 1;
  if (odd) fesetround(FE_UPWARD);
  if (!odd) feenableexcept(FE_OVERFLOW | FE_INVALID | FE_DIVBYZERO);
  for (const bool waits : {true, false}) {
    std::vector<float> data(count), all(count * hvd::size());
    for (size_t i = 0; i < count; ++i) data[i] = 1.0f / static_cast<float>(hvd::rank() + 3 + i % 7);
    data[0] = 3e38f;
    const int64_t shape[] = {static_cast<int64_t>(count)};
    hvd_tensor_t tensor = HVD_TENSOR_INIT;
    tensor.data = data.data();
    tensor.shape = shape;
    tensor.ndim = 1;
    hvd_options_t options = HVD_OPTIONS_INIT;
    options.op = HVD_SUM;
    hvd_handle_t handle = 0;
    Must(hvd_allreduce_async(&tensor, &tensor, &options, &handle), "odd floats");
    int32_t done = waits ? 1 : 0;
    while (done == 0) Must(hvd_poll(handle, &done), "odd floats");
    Must(hvd_wait(handle), "odd floats");
    hvd_tensor_t result = HVD_TENSOR_INIT;
    Must(hvd_allgather(&tensor, nullptr, nullptr, &result), "odd floats");
    for (int rank = 1; rank < hvd::size(); ++rank) {
      const auto* bytes = static_cast<const unsigned char*>(result.data);
      const size_t each = count * sizeof(float);
      if (memcmp(bytes, bytes + rank * each, each) != 0) Fail("odd floats: other bits");
    }
    hvd_free_result(&result);
  }
  if (odd && fegetround() != FE_UPWARD) Fail("odd floats: rounds as before no more");
  fesetenv(FE_DFL_ENV);
}

}  // namespace

// Some ranks have two in flight, the others one after the other.
void CheckUnnamedGroups() {
  const bool together = hvd::rank() % 2 == 0;
  std::vector<float> go(1);
  if (!together) hvd::allreduce(go, hvd::Op::kSum, "groups are in flight");
  Group groups[2] = {Mixed(100), Mixed(40)};
  hvd_handle_t handles[2] = {};
  for (int i = 0; i < 2; ++i) {
    Must(hvd_grouped_allreduce_async(groups[i].tensors.data(), nullptr, groups[i].size(), nullptr,
                                     &handles[i]),
         "unnamed group");
    if (!together) Must(hvd_wait(handles[i]), "unnamed group, one after the other");
  }
  if (!together) return;
  hvd::allreduce(go, hvd::Op::kSum, "groups are in flight");
  for (const hvd_handle_t handle : handles) Must(hvd_wait(handle), "unnamed group, two at once");
}

void CheckGroups() {
  CheckGroupedAllreduce(false);
  CheckGroupedAllreduce(true);
  CheckUnnamedGroups();
  CheckGroupedAllgather();
  CheckGroupedReduceScatter();
}

void CheckOptions() {
  CheckNamesWithoutOp();
  for (const size_t count : {3, 1000, 200003}) {
    for (const char* name : {"float32", "float64", "bfloat16", "float16", "float8_e4m3fn",
                             "float8_e5m2", "complex64", "complex128"}) {
      CheckScale(name, count);
    }
    for (const char* name :
         {"uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"}) {
      CheckIntegerScale(name, count);
    }
    CheckExtremes(count);
    CheckOddFloats(count);
    for (const char* name : {"float32", "float64"}) {
      CheckCompression(name, HVD_COMPRESSION_FP16, count);
      CheckCompression(name, HVD_COMPRESSION_BF16, count);
    }
  }
}

// Equal gradients are averaged: Adasum of what is the same everywhere is the same. Orthogonal ones
// are added.
void CheckAdasum() {
  for (const char* name : {"float32", "float64", "float16"}) {
    const Dtype dtype = Named(name);
    Array same(dtype, {1001}), apart(dtype, {hvd::size()});
    for (size_t i = 0; i < same.count(); ++i) same.Set(i, Value(dtype, 0, i));
    for (size_t i = 0; i < apart.count(); ++i) apart.Set(i, static_cast<int>(i) == hvd::rank());
    hvd_options_t options = HVD_OPTIONS_INIT;
    options.op = HVD_ADASUM;
    const hvd_tensor_t both[] = {*same.tensor(), *apart.tensor()};
    Must(hvd_grouped_allreduce(both, nullptr, 2, &options), "adasum");
    for (size_t i = 0; i < same.count(); ++i) {
      if (std::abs(same.Get(i) - Value(dtype, 0, i)) > 1e-3) Fail("adasum of equal ones");
    }
    for (size_t i = 0; i < apart.count(); ++i) {
      if (apart.Get(i) != 1) Fail("adasum of orthogonal ones");
    }
  }
}
