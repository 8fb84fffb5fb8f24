// SPDX-License-Identifier: Apache-2.0
// Allreduces of plain memory and vectors, for hvd.hpp, which includes it.
//
// The tensor has one dimension. The arguments asked for most come after it: the op (an average
// without one) and the name, or an hvd::Options with everything. All ranks of the process set give
// the same count, type, op and scales; otherwise each throws HVD_ERR_MISMATCH, and the next call
// works. A rank that dies or leaves is HVD_ERR_ABORTED on all others. Any thread may call.
#pragma once

#include <cstddef>
#include <vector>

#include "hvd/handle.hpp"
#include "hvd/hvd.h"
#include "hvd/types.hpp"

namespace hvd {

namespace internal {

template <class T>
void Allreduce(const T* input, T* output, size_t count, const hvd_options_t& options) {
  const Tensor<T> in(input, count), out(output, count);
  ThrowIfError(hvd_allreduce(in.get(), out.get(), &options));
}
template <class T>
Handle AllreduceAsync(const T* input, T* output, size_t count, const hvd_options_t& options) {
  const Tensor<T> in(input, count), out(output, count);
  hvd_handle_t handle = 0;
  ThrowIfError(hvd_allreduce_async(in.get(), out.get(), &options, &handle));
  return Handle(handle);
}

}  // namespace internal

// Reduces `count` elements over all ranks into `output`, and returns when it is there: the same
// bits on every rank. input and output do not overlap unless they are the same (HVD_ERR_INVALID).
// Integer averages truncate towards zero.
template <class T>
void allreduce(const T* input, T* output, size_t count, Op op = Op::kAverage,
               const Name& name = {}) {
  internal::Allreduce(input, output, count, internal::MakeOptions(op, name));
}
template <class T>
void allreduce(const T* input, T* output, size_t count, const Name& name) {
  allreduce(input, output, count, Op::kAverage, name);
}
template <class T>
void allreduce(const T* input, T* output, size_t count, const Options& options) {
  internal::Allreduce(input, output, count, internal::MakeOptions(options));
}

// In place. After HVD_ERR_ABORTED what `data` holds is undefined.
template <class T>
void allreduce(T* data, size_t count, Op op = Op::kAverage, const Name& name = {}) {
  internal::Allreduce<T>(data, data, count, internal::MakeOptions(op, name));
}
template <class T>
void allreduce(T* data, size_t count, const Name& name) {
  allreduce(data, count, Op::kAverage, name);
}
template <class T>
void allreduce(T* data, size_t count, const Options& options) {
  internal::Allreduce<T>(data, data, count, internal::MakeOptions(options));
}
template <class T>
void allreduce(std::vector<T>& data, Op op = Op::kAverage, const Name& name = {}) {
  allreduce(internal::DataOf(data), data.size(), op, name);
}
template <class T>
void allreduce(std::vector<T>& data, const Name& name) {
  allreduce(internal::DataOf(data), data.size(), Op::kAverage, name);
}
template <class T>
void allreduce(std::vector<T>& data, const Options& options) {
  allreduce(internal::DataOf(data), data.size(), options);
}

// The same, but these return at once. The memory is hvd's until the handle is done: do not read,
// write, free or resize it. The handle's wait throws what a blocking call would have thrown.
template <class T>
Handle allreduce_async(const T* input, T* output, size_t count, Op op = Op::kAverage,
                       const Name& name = {}) {
  return internal::AllreduceAsync(input, output, count, internal::MakeOptions(op, name));
}
template <class T>
Handle allreduce_async(const T* input, T* output, size_t count, const Name& name) {
  return allreduce_async(input, output, count, Op::kAverage, name);
}
template <class T>
Handle allreduce_async(const T* input, T* output, size_t count, const Options& options) {
  return internal::AllreduceAsync(input, output, count, internal::MakeOptions(options));
}
template <class T>
Handle allreduce_async(T* data, size_t count, Op op = Op::kAverage, const Name& name = {}) {
  return internal::AllreduceAsync<T>(data, data, count, internal::MakeOptions(op, name));
}
template <class T>
Handle allreduce_async(T* data, size_t count, const Name& name) {
  return allreduce_async(data, count, Op::kAverage, name);
}
template <class T>
Handle allreduce_async(T* data, size_t count, const Options& options) {
  return internal::AllreduceAsync<T>(data, data, count, internal::MakeOptions(options));
}
template <class T>
Handle allreduce_async(std::vector<T>& data, Op op = Op::kAverage, const Name& name = {}) {
  return allreduce_async(internal::DataOf(data), data.size(), op, name);
}
template <class T>
Handle allreduce_async(std::vector<T>& data, const Name& name) {
  return allreduce_async(internal::DataOf(data), data.size(), Op::kAverage, name);
}
template <class T>
Handle allreduce_async(std::vector<T>& data, const Options& options) {
  return allreduce_async(internal::DataOf(data), data.size(), options);
}

}  // namespace hvd
