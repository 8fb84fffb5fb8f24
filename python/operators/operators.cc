// SPDX-License-Identifier: Apache-2.0
// The operators torch.ops.hvd.*: one call of libhvd each. The schemas at the end say what they take
// and give; shapes for the compiler and gradients are in hvd/torch/operator_rules.py.
//
// They block; torch has given Python's lock away by then.
#include <torch/csrc/stable/ops.h>

#include <algorithm>

#include "python/operators/call.h"

namespace hvd {
namespace {

using torch::stable::detail::from;

void Allreduce(StableIValue* stack, uint64_t, uint64_t) {
  Arguments arguments(stack);
  const Tensor input = Dense(arguments.Next<Tensor>());
  Options options("allreduce");
  options.ReadReduction(&arguments);
  const Tensor output = NewTensor(input, ShapeOf(input));
  const hvd_tensor_t source = Describe(input);
  const hvd_tensor_t target = Describe(output);
  Check(hvd_allreduce(&source, &target, options.Get()));
  stack[0] = from(output);
}

void AllreduceInPlace(StableIValue* stack, uint64_t, uint64_t) {
  Arguments arguments(stack);
  const Tensor tensor = arguments.Next<Tensor>();
  Options options("allreduce");
  options.ReadReduction(&arguments);
  CheckDense(tensor);
  const hvd_tensor_t place = Describe(tensor);
  Check(hvd_allreduce(&place, &place, options.Get()));
}

void GroupedAllreduce(StableIValue* stack, uint64_t, uint64_t) {
  Arguments arguments(stack);
  const auto inputs = arguments.Next<std::vector<Tensor>>();
  Options options("grouped_allreduce");
  options.ReadReduction(&arguments);
  Row sources, targets;
  for (const Tensor& input : inputs) {
    sources.Add(Dense(input));
    targets.Add(NewTensor(input, ShapeOf(input)));
  }
  Check(hvd_grouped_allreduce(sources.descriptions(), targets.descriptions(), sources.size(),
                              options.Get()));
  stack[0] = from(targets.tensors());
}

void GroupedAllreduceInPlace(StableIValue* stack, uint64_t, uint64_t) {
  Arguments arguments(stack);
  const auto tensors = arguments.Next<std::vector<Tensor>>();
  Options options("grouped_allreduce");
  options.ReadReduction(&arguments);
  Row places;
  for (const Tensor& tensor : tensors) {
    CheckDense(tensor);
    places.Add(tensor);
  }
  Check(hvd_grouped_allreduce(places.descriptions(), nullptr, places.size(), options.Get()));
}

void Broadcast(StableIValue* stack, uint64_t, uint64_t) {
  Arguments arguments(stack);
  const Tensor input = Dense(arguments.Next<Tensor>());
  Options options("broadcast");
  options.ReadRoot(&arguments);
  const Tensor output = NewTensor(input, ShapeOf(input));
  const hvd_tensor_t source = Describe(input);
  const hvd_tensor_t target = Describe(output);
  Check(hvd_broadcast(&source, &target, options.Get()));
  stack[0] = from(output);
}

void BroadcastInPlace(StableIValue* stack, uint64_t, uint64_t) {
  Arguments arguments(stack);
  const Tensor tensor = arguments.Next<Tensor>();
  Options options("broadcast");
  options.ReadRoot(&arguments);
  CheckDense(tensor);
  const hvd_tensor_t place = Describe(tensor);
  Check(hvd_broadcast(&place, &place, options.Get()));
}

void Allgather(StableIValue* stack, uint64_t, uint64_t) {
  Arguments arguments(stack);
  const Tensor input = Dense(arguments.Next<Tensor>());
  Options options("allgather");
  options.ReadSetAndName(&arguments);
  const auto rows = arguments.Next<std::optional<int64_t>>();
  const hvd_tensor_t source = Describe(input);
  if (rows) {
    const Tensor output = NewTensor(input, WithRows(ShapeOf(input), *rows));
    const hvd_tensor_t target = Describe(output);
    Check(hvd_allgather(&source, &target, options.Get(), nullptr));
    stack[0] = from(output);
    return;
  }
  Results result({input}, &options);
  Check(hvd_allgather(&source, nullptr, options.Get(), nullptr));
  stack[0] = from(result.At(0));
}

void GroupedAllgather(StableIValue* stack, uint64_t, uint64_t) {
  Arguments arguments(stack);
  const auto inputs = arguments.Next<std::vector<Tensor>>();
  Options options("grouped_allgather");
  options.ReadSetAndName(&arguments);
  Row sources;
  for (const Tensor& input : inputs) sources.Add(Dense(input));
  Results results(inputs, &options);
  Check(hvd_grouped_allgather(sources.descriptions(), nullptr, sources.size(), options.Get(),
                              nullptr));
  stack[0] = from(results.All());
}

std::vector<int64_t> CountsOf(const Tensor& splits) {
  using torch::headeronly::ScalarType;
  const Tensor dense = Dense(OnHost(splits));
  const ScalarType type = dense.scalar_type();
  if (dense.dim() != 1 || (type != ScalarType::Int && type != ScalarType::Long)) {
    Refuse("splits must be a one-dimensional tensor of int32 or int64");
  }
  const size_t count = dense.numel();
  if (type == ScalarType::Long) {
    const auto* numbers = static_cast<const int64_t*>(dense.const_data_ptr());
    return std::vector<int64_t>(numbers, numbers + count);
  }
  const auto* numbers = static_cast<const int32_t*>(dense.const_data_ptr());
  return std::vector<int64_t>(numbers, numbers + count);
}

void Alltoall(StableIValue* stack, uint64_t, uint64_t) {
  Arguments arguments(stack);
  const Tensor input = Dense(arguments.Next<Tensor>());
  const auto splits = arguments.Next<std::optional<Tensor>>();
  Options options("alltoall");
  options.ReadSetAndName(&arguments);
  const auto rows = arguments.Next<std::optional<int64_t>>();
  const std::vector<int64_t> counts = splits ? CountsOf(*splits) : std::vector<int64_t>();
  const hvd_tensor_t source = Describe(input);
  std::vector<int64_t> received(std::max(hvd_process_set_size(options.process_set()), 1));
  Results result({input}, &options, rows);
  Check(hvd_alltoall(&source, splits ? counts.data() : nullptr, static_cast<int32_t>(counts.size()),
                     nullptr, options.Get(), nullptr, received.data()));
  const std::vector<Tensor> outputs = {result.At(0), NewInt32s(received)};
  stack[0] = from(outputs);
}

// This rank's share of a reducescatter's rows: the first ranks get one more of what does not
// divide. Nothing when libhvd will refuse the call.
std::optional<int64_t> ShareOf(const Tensor& input, int32_t process_set) {
  const int32_t rank = hvd_process_set_rank(process_set);
  if (input.dim() == 0 || rank < 0) return std::nullopt;
  const int64_t rows = input.size(0);
  const int64_t size = hvd_process_set_size(process_set);
  return rows / size + (rank < rows % size ? 1 : 0);
}

// Makes the tensor that a reducescatter of the input fills.
Tensor NewShare(const Tensor& input, const std::optional<int64_t>& rows, int32_t process_set) {
  const auto share = ShareOf(input, process_set);
  if (rows && share && *rows != *share) {
    Refuse("rows is " + std::to_string(*rows) + ", but this rank gets " + std::to_string(*share) +
           " of the " + std::to_string(input.size(0)) + " rows; give that, or none");
  }
  return NewTensor(input, WithRows(ShapeOf(input), share.value_or(0)));
}

void Reducescatter(StableIValue* stack, uint64_t, uint64_t) {
  Arguments arguments(stack);
  const Tensor input = Dense(arguments.Next<Tensor>());
  Options options("reducescatter");
  options.ReadReduction(&arguments);
  const auto rows = arguments.Next<std::optional<int64_t>>();
  const Tensor output = NewShare(input, rows, options.process_set());
  const hvd_tensor_t source = Describe(input);
  const hvd_tensor_t target = Describe(output);
  Check(hvd_reducescatter(&source, &target, options.Get(), nullptr));
  stack[0] = from(output);
}

void GroupedReducescatter(StableIValue* stack, uint64_t, uint64_t) {
  Arguments arguments(stack);
  const auto inputs = arguments.Next<std::vector<Tensor>>();
  Options options("grouped_reducescatter");
  options.ReadReduction(&arguments);
  const auto rows = arguments.Next<std::optional<std::vector<int64_t>>>();
  if (rows && rows->size() != inputs.size()) {
    Refuse("rows must have one number for each tensor");
  }
  Row sources, targets;
  for (size_t i = 0; i < inputs.size(); ++i) {
    sources.Add(Dense(inputs[i]));
    const auto wanted = rows ? std::optional<int64_t>((*rows)[i]) : std::nullopt;
    targets.Add(NewShare(inputs[i], wanted, options.process_set()));
  }
  Check(hvd_grouped_reducescatter(sources.descriptions(), targets.descriptions(), sources.size(),
                                  options.Get(), nullptr));
  stack[0] = from(targets.tensors());
}

// Rows of a tensor, as a tensor of their own.
Tensor CopyRows(const Tensor& whole, int64_t first, int64_t rows) {
  if (whole.dim() == 0 || first + rows > whole.size(0)) {
    Refuse("the ranks have more rows than were gathered");
  }
  Tensor same = whole;
  Tensor copy = NewTensor(whole, WithRows(ShapeOf(whole), rows));
  torch::stable::copy_(copy, torch::stable::narrow(same, 0, first, rows));
  return copy;
}

// A gradient that all ranks have for what they gathered: this rank's rows of it. The ranks say how
// many they have, as in the Python package, so that compiled ranks and others work together.
void OwnRows(StableIValue* stack, uint64_t, uint64_t) {
  Arguments arguments(stack);
  const Tensor whole = Dense(arguments.Next<Tensor>());
  const auto rows = arguments.Next<int64_t>();
  Options options("allgather");
  options.ReadSetAndName(&arguments);
  const Tensor mine = NewInt64s({rows});
  const hvd_tensor_t source = Describe(mine);
  Results counts({mine}, &options);
  Check(hvd_allgather(&source, nullptr, options.Get(), nullptr));
  const Tensor told = counts.At(0);
  const auto* all = static_cast<const int64_t*>(told.const_data_ptr());
  int64_t before = 0;
  for (int32_t i = 0; i < hvd_process_set_rank(options.process_set()); ++i) before += all[i];
  stack[0] = from(CopyRows(whole, before, rows));
}

// In numbers that a compiled program looks up when it runs: what is compiled may be kept on disk,
// and used by another rank of another job.
void RankAndSize(StableIValue* stack, uint64_t, uint64_t) {
  Arguments arguments(stack);
  const Tensor like = arguments.Next<Tensor>();
  const int32_t process_set = arguments.NextInt32();
  const int32_t size = hvd_process_set_size(process_set);
  if (size < 0) {
    Refuse("there is no process set " + std::to_string(process_set));
  }
  stack[0] = from(Beside(like, NewInt64s({hvd_process_set_rank(process_set), size})));
}

// The same for both kinds of devices.
void Implement(auto& library) {
  library.impl("allreduce", &Allreduce);
  library.impl("allreduce_", &AllreduceInPlace);
  library.impl("grouped_allreduce", &GroupedAllreduce);
  library.impl("grouped_allreduce_", &GroupedAllreduceInPlace);
  library.impl("broadcast", &Broadcast);
  library.impl("broadcast_", &BroadcastInPlace);
  library.impl("allgather", &Allgather);
  library.impl("grouped_allgather", &GroupedAllgather);
  library.impl("alltoall", &Alltoall);
  library.impl("reducescatter", &Reducescatter);
  library.impl("grouped_reducescatter", &GroupedReducescatter);
  library.impl("own_rows", &OwnRows);
  library.impl("rank_and_size", &RankAndSize);
}

}  // namespace
}  // namespace hvd

// op, compression: hvd_op_t, hvd_compression_t. process_set: its number. name "": unnamed.
// rows: of the output, where the caller knows them; the compiler then knows the shape.
#define HVD_REDUCTION                                                                    \
  "int op=0, float prescale_factor=1.0, float postscale_factor=1.0, int compression=0, " \
  "int process_set=0, str name=\"\""
#define HVD_SET_AND_NAME "int process_set=0, str name=\"\""

STABLE_TORCH_LIBRARY(hvd, library) {
  library.def("allreduce(Tensor input, " HVD_REDUCTION ") -> Tensor");
  library.def("allreduce_(Tensor(a!) tensor, " HVD_REDUCTION ") -> ()");
  library.def("grouped_allreduce(Tensor[] inputs, " HVD_REDUCTION ") -> Tensor[]");
  library.def("grouped_allreduce_(Tensor(a!)[] tensors, " HVD_REDUCTION ") -> ()");
  library.def("broadcast(Tensor input, int root_rank, " HVD_SET_AND_NAME ") -> Tensor");
  library.def("broadcast_(Tensor(a!) tensor, int root_rank, " HVD_SET_AND_NAME ") -> ()");
  library.def("allgather(Tensor input, " HVD_SET_AND_NAME ", SymInt? rows=None) -> Tensor");
  library.def("grouped_allgather(Tensor[] inputs, " HVD_SET_AND_NAME ") -> Tensor[]");
  // Returns the rows that came, and how many came from each member. No tuple: torch 2.13's inductor
  // does not compile one of unknown size from an operator that is kept in order.
  library.def("alltoall(Tensor input, Tensor? splits=None, " HVD_SET_AND_NAME
              ", SymInt? rows=None) -> Tensor[]");
  library.def("reducescatter(Tensor input, " HVD_REDUCTION ", SymInt? rows=None) -> Tensor");
  library.def("grouped_reducescatter(Tensor[] inputs, " HVD_REDUCTION
              ", SymInt[]? rows=None) -> Tensor[]");
  library.def("own_rows(Tensor whole, SymInt rows, " HVD_SET_AND_NAME ") -> Tensor");
  library.def("rank_and_size(Tensor like, int process_set=0) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(hvd, CPU, library) { hvd::Implement(library); }
STABLE_TORCH_LIBRARY_IMPL(hvd, CUDA, library) { hvd::Implement(library); }
