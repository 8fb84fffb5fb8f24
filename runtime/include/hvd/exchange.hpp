// SPDX-License-Identifier: Apache-2.0
// The calls that move rows between ranks, for hvd.hpp, which includes it: allgather,
// reduce-scatter, alltoall, broadcast; and one tensor from rank to rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hvd/handle.hpp"
#include "hvd/hvd.h"
#include "hvd/types.hpp"

namespace hvd {

namespace internal {

template <class T>
GatherHandle<T> AllgatherAsync(const Tensor<T>& in, const hvd_options_t& options) {
  RefuseVectorOfBool<T>();
  hvd_handle_t handle = 0;
  ThrowIfError(hvd_allgather_async(in.get(), nullptr, &options, &handle));
  return GatherHandle<T>(handle);
}
template <class T>
std::vector<T> Allgather(const Tensor<T>& in, const hvd_options_t& options) {
  RefuseVectorOfBool<T>();
  Result result;
  ThrowIfError(hvd_allgather(in.get(), nullptr, &options, result.get()));
  return result.Copy<T>();
}

template <class T>
void Broadcast(T* data, size_t count, int root, hvd_options_t options) {
  const Tensor<T> tensor(data, count);
  options.root = root;
  ThrowIfError(hvd_broadcast(tensor.get(), tensor.get(), &options));
}
template <class T>
Handle BroadcastAsync(T* data, size_t count, int root, hvd_options_t options) {
  const Tensor<T> tensor(data, count);
  options.root = root;
  hvd_handle_t handle = 0;
  ThrowIfError(hvd_broadcast_async(tensor.get(), tensor.get(), &options, &handle));
  return Handle(handle);
}

// No splits at all stand for even ones.
inline const int64_t* SplitsOf(const std::vector<int64_t>& splits) {
  return splits.empty() ? nullptr : splits.data();
}
inline size_t RanksOf(int process_set) {
  const int32_t ranks = hvd_process_set_size(process_set);
  return ranks > 0 ? static_cast<size_t>(ranks) : 0;
}

}  // namespace internal

// ---- allgather ----

// `rows` rows of `row_elements` each; returns all ranks' rows one after the other, in rank order.
// The number of rows may differ from rank to rank (zero is allowed), row_elements may not. The
// memory is hvd's until the handle is done.
template <class T>
GatherHandle<T> allgather_async(const T* data, size_t rows, size_t row_elements,
                                const Name& name = {}) {
  return internal::AllgatherAsync<T>({data, rows, row_elements}, internal::MakeOptions(name));
}
template <class T>
GatherHandle<T> allgather_async(const T* data, size_t rows, size_t row_elements,
                                const Options& options) {
  return internal::AllgatherAsync<T>({data, rows, row_elements}, internal::MakeOptions(options));
}
template <class T>
std::vector<T> allgather(const T* data, size_t rows, size_t row_elements, const Name& name = {}) {
  return internal::Allgather<T>({data, rows, row_elements}, internal::MakeOptions(name));
}
template <class T>
std::vector<T> allgather(const T* data, size_t rows, size_t row_elements, const Options& options) {
  return internal::Allgather<T>({data, rows, row_elements}, internal::MakeOptions(options));
}
// Rows of one element: a vector, whose length may differ from rank to rank.
template <class T>
std::vector<T> allgather(const std::vector<T>& data, const Name& name = {}) {
  return allgather(internal::DataOf(data), data.size(), 1, name);
}
template <class T>
std::vector<T> allgather(const std::vector<T>& data, const Options& options) {
  return allgather(internal::DataOf(data), data.size(), 1, options);
}

// ---- reduce-scatter, alltoall ----

// Reduces `rows` rows of `row_elements` each; returns this rank's rows of the result. When they do
// not divide evenly, the first ranks get one more.
template <class T>
std::vector<T> reducescatter(const T* data, size_t rows, size_t row_elements,
                             const Options& options = {}) {
  internal::RefuseVectorOfBool<T>();
  const internal::Tensor<T> in(data, rows, row_elements);
  const hvd_options_t made = internal::MakeOptions(options);
  internal::Result result;
  internal::ThrowIfError(hvd_reducescatter(in.get(), nullptr, &made, result.get()));
  return result.Copy<T>();
}
// Returns at once; the memory is hvd's until the handle is done.
template <class T>
GatherHandle<T> reducescatter_async(const T* data, size_t rows, size_t row_elements,
                                    const Options& options = {}) {
  internal::RefuseVectorOfBool<T>();
  const internal::Tensor<T> in(data, rows, row_elements);
  const hvd_options_t made = internal::MakeOptions(options);
  hvd_handle_t handle = 0;
  internal::ThrowIfError(hvd_reducescatter_async(in.get(), nullptr, &made, &handle));
  return GatherHandle<T>(handle);
}

// Sends splits[r] of the rows to rank r; without splits the rows are divided evenly.
template <class T>
Received<T> alltoall(const T* data, size_t rows, size_t row_elements,
                     const std::vector<int64_t>& splits = {}, const Options& options = {}) {
  internal::RefuseVectorOfBool<T>();
  const internal::Tensor<T> in(data, rows, row_elements);
  const hvd_options_t made = internal::MakeOptions(options);
  internal::Result result;
  Received<T> received;
  received.splits.resize(internal::RanksOf(options.process_set));
  internal::ThrowIfError(hvd_alltoall(in.get(), internal::SplitsOf(splits),
                                      static_cast<int32_t>(splits.size()), nullptr, &made,
                                      result.get(), received.splits.data()));
  received.data = result.Copy<T>();
  return received;
}
// Returns at once; the rows are hvd's until the handle is done, the splits are copied.
template <class T>
AlltoallHandle<T> alltoall_async(const T* data, size_t rows, size_t row_elements,
                                 const std::vector<int64_t>& splits = {},
                                 const Options& options = {}) {
  internal::RefuseVectorOfBool<T>();
  const internal::Tensor<T> in(data, rows, row_elements);
  const hvd_options_t made = internal::MakeOptions(options);
  const size_t ranks = internal::RanksOf(options.process_set);
  hvd_handle_t handle = 0;
  internal::ThrowIfError(hvd_alltoall_async(in.get(), internal::SplitsOf(splits),
                                            static_cast<int32_t>(splits.size()), nullptr, &made,
                                            &handle));
  return AlltoallHandle<T>(handle, ranks);
}

// ---- broadcast ----

// Copies the root's `count` elements into every rank's `data`. `root` is a rank of the job.
template <class T>
void broadcast(T* data, size_t count, int root = 0, const Name& name = {}) {
  internal::Broadcast(data, count, root, internal::MakeOptions(name));
}
template <class T>
void broadcast(T* data, size_t count, int root, const Options& options) {
  internal::Broadcast(data, count, root, internal::MakeOptions(options));
}
// Every rank's vector must already have the root's length.
template <class T>
void broadcast(std::vector<T>& data, int root = 0, const Name& name = {}) {
  broadcast(internal::DataOf(data), data.size(), root, name);
}
template <class T>
void broadcast(std::vector<T>& data, int root, const Options& options) {
  broadcast(internal::DataOf(data), data.size(), root, options);
}
// Returns at once; the memory is hvd's until the handle is done.
template <class T>
Handle broadcast_async(T* data, size_t count, int root = 0, const Name& name = {}) {
  return internal::BroadcastAsync(data, count, root, internal::MakeOptions(name));
}
template <class T>
Handle broadcast_async(T* data, size_t count, int root, const Options& options) {
  return internal::BroadcastAsync(data, count, root, internal::MakeOptions(options));
}
template <class T>
Handle broadcast_async(std::vector<T>& data, int root = 0, const Name& name = {}) {
  return broadcast_async(internal::DataOf(data), data.size(), root, name);
}
template <class T>
Handle broadcast_async(std::vector<T>& data, int root, const Options& options) {
  return broadcast_async(internal::DataOf(data), data.size(), root, options);
}

// ---- send, receive ----

// `count` elements to the rank `destination`, which receives as many of the same type with the same
// tag; see hvd_send. Returns when they are received or on their way.
template <class T>
void send(const T* data, size_t count, int destination, int64_t tag = 0,
          int process_set = HVD_GLOBAL_PROCESS_SET) {
  const internal::Tensor<T> tensor(data, count);
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.process_set = process_set;
  internal::ThrowIfError(hvd_send(tensor.get(), destination, tag, &options));
}
template <class T>
void recv(T* data, size_t count, int source, int64_t tag = 0,
          int process_set = HVD_GLOBAL_PROCESS_SET) {
  const internal::Tensor<T> tensor(data, count);
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.process_set = process_set;
  internal::ThrowIfError(hvd_recv(tensor.get(), source, tag, &options));
}
// These return at once; the memory is hvd's until the handle is done.
template <class T>
Handle send_async(const T* data, size_t count, int destination, int64_t tag = 0,
                  int process_set = HVD_GLOBAL_PROCESS_SET) {
  const internal::Tensor<T> tensor(data, count);
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.process_set = process_set;
  hvd_handle_t handle = 0;
  internal::ThrowIfError(hvd_send_async(tensor.get(), destination, tag, &options, &handle));
  return Handle(handle);
}
template <class T>
Handle recv_async(T* data, size_t count, int source, int64_t tag = 0,
                  int process_set = HVD_GLOBAL_PROCESS_SET) {
  const internal::Tensor<T> tensor(data, count);
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.process_set = process_set;
  hvd_handle_t handle = 0;
  internal::ThrowIfError(hvd_recv_async(tensor.get(), source, tag, &options, &handle));
  return Handle(handle);
}

}  // namespace hvd
