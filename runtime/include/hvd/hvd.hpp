// hvd for C++17: headers over the C ABI (hvd.h), nothing to link but libhvd. This one includes the
// others.
//
//   hvd::Session session;  // joins the job; leaves it at the end of the scope
//   std::vector<float> gradient = ...;
//   hvd::allreduce(gradient, hvd::Op::kAverage, "gradient");  // in place, the same bits everywhere
//
// Every call that can fail throws hvd::Error. Every function may be called from any thread; what
// must agree between the ranks is said in hvd.h. Counts are elements, never bytes. Data lies in
// host memory.
//
// Names tell which calls of different ranks belong together, so that ranks may submit in different
// orders; calls without a name are matched by their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "hvd/groups.hpp"
#include "hvd/handle.hpp"
#include "hvd/hvd.h"
#include "hvd/memory.hpp"
#include "hvd/types.hpp"

namespace hvd {

// ---- the job ----

// Joins the job that started this process and returns when all ranks have; alone, without hvdrun,
// the size is 1. Throws HVD_ERR_LAUNCH when the launcher's link is broken.
inline void init() { internal::ThrowIfError(hvd_init(nullptr)); }
// Leaves it, once every rank does.
inline void shutdown() { internal::ThrowIfError(hvd_shutdown()); }
inline bool is_initialized() { return hvd_is_initialized() != 0; }

// Each is -1 outside a session.
inline int rank() { return hvd_rank(); }              // of the job
inline int size() { return hvd_size(); }              // ranks of the job
inline int local_rank() { return hvd_local_rank(); }  // on this host
inline int local_size() { return hvd_local_size(); }
inline int cross_rank() {
  return hvd_cross_rank();
}  // of this host among those with this local rank
inline int cross_size() { return hvd_cross_size(); }
inline bool is_homogeneous() { return hvd_is_homogeneous() == 1; }  // every host has as many ranks

// init() and shutdown() as a scope. When the scope is left by an exception, the ranks leave it one
// by one and hvdrun reports the first; an error of the shutdown itself has nobody to go to then.
class Session {
 public:
  Session() { init(); }
  ~Session() { hvd_shutdown(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
};

// ---- allreduce ----

// Reduces `count` elements over all ranks into `output`; input and output do not overlap unless
// they are the same. All ranks give the same count, type and op. Integer averages truncate towards
// zero.
template <class T>
void allreduce(const T* input, T* output, size_t count, Op op = Op::kAverage,
               const std::string& name = {}) {
  const internal::Tensor<T> in(input, count), out(output, count);
  hvd_options_t options = internal::MakeOptions(name);
  options.op = static_cast<int32_t>(op);
  internal::ThrowIfError(hvd_allreduce(in.get(), out.get(), &options));
}

// In place.
template <class T>
void allreduce(T* data, size_t count, Op op = Op::kAverage, const std::string& name = {}) {
  allreduce(static_cast<const T*>(data), data, count, op, name);
}
template <class T>
void allreduce(std::vector<T>& data, Op op = Op::kAverage, const std::string& name = {}) {
  allreduce(data.data(), data.size(), op, name);
}

// Returns at once; the memory is hvd's until the handle is done.
template <class T>
Handle allreduce_async(const T* input, T* output, size_t count, Op op = Op::kAverage,
                       const std::string& name = {}) {
  const internal::Tensor<T> in(input, count), out(output, count);
  hvd_options_t options = internal::MakeOptions(name);
  options.op = static_cast<int32_t>(op);
  hvd_handle_t handle = 0;
  internal::ThrowIfError(hvd_allreduce_async(in.get(), out.get(), &options, &handle));
  return Handle(handle);
}
template <class T>
Handle allreduce_async(T* data, size_t count, Op op = Op::kAverage, const std::string& name = {}) {
  return allreduce_async(static_cast<const T*>(data), data, count, op, name);
}
template <class T>
Handle allreduce_async(std::vector<T>& data, Op op = Op::kAverage, const std::string& name = {}) {
  return allreduce_async(data.data(), data.size(), op, name);
}

// In place, with all options.
template <class T>
void allreduce(T* data, size_t count, const Options& options) {
  const internal::Tensor<T> tensor(data, count);
  const hvd_options_t made = internal::MakeOptions(options);
  internal::ThrowIfError(hvd_allreduce(tensor.get(), tensor.get(), &made));
}
template <class T>
void allreduce(std::vector<T>& data, const Options& options) {
  allreduce(data.data(), data.size(), options);
}
template <class T>
Handle allreduce_async(T* data, size_t count, const Options& options) {
  const internal::Tensor<T> tensor(data, count);
  const hvd_options_t made = internal::MakeOptions(options);
  hvd_handle_t handle = 0;
  internal::ThrowIfError(hvd_allreduce_async(tensor.get(), tensor.get(), &made, &handle));
  return Handle(handle);
}

// ---- allgather ----

// `rows` rows of `row_elements` each; returns all ranks' rows one after the other, in rank order.
// The number of rows may differ from rank to rank (zero is allowed), row_elements may not. The
// memory is hvd's until the handle is done.
template <class T>
GatherHandle<T> allgather_async(const T* data, size_t rows, size_t row_elements,
                                const std::string& name = {}) {
  static_assert(!std::is_same<T, bool>::value, "std::vector<bool> is packed: gather uint8_t");
  const internal::Tensor<T> in(data, rows, row_elements);
  const hvd_options_t options = internal::MakeOptions(name);
  hvd_handle_t handle = 0;
  internal::ThrowIfError(hvd_allgather_async(in.get(), nullptr, &options, &handle));
  return GatherHandle<T>(handle);
}
template <class T>
std::vector<T> allgather(const T* data, size_t rows, size_t row_elements,
                         const std::string& name = {}) {
  static_assert(!std::is_same<T, bool>::value, "std::vector<bool> is packed: gather uint8_t");
  const internal::Tensor<T> in(data, rows, row_elements);
  const hvd_options_t options = internal::MakeOptions(name);
  internal::Result result;
  internal::ThrowIfError(hvd_allgather(in.get(), nullptr, &options, result.get()));
  return result.Copy<T>();
}
// Rows of one element: a vector, whose length may differ from rank to rank.
template <class T>
std::vector<T> allgather(const std::vector<T>& data, const std::string& name = {}) {
  return allgather(data.data(), data.size(), 1, name);
}

// ---- reduce-scatter, alltoall ----

// Reduces `rows` rows of `row_elements` each; returns this rank's rows of the result. When they do
// not divide evenly, the first ranks get one more.
template <class T>
std::vector<T> reducescatter(const T* data, size_t rows, size_t row_elements,
                             const Options& options = {}) {
  static_assert(!std::is_same<T, bool>::value, "std::vector<bool> is packed: use uint8_t");
  const internal::Tensor<T> in(data, rows, row_elements);
  const hvd_options_t made = internal::MakeOptions(options);
  internal::Result result;
  internal::ThrowIfError(hvd_reducescatter(in.get(), nullptr, &made, result.get()));
  return result.Copy<T>();
}

// What an alltoall brought: the ranks' rows in rank order, and how many from each.
template <class T>
struct Received {
  std::vector<T> data;
  std::vector<int64_t> splits;
};

// Sends splits[r] of the rows to rank r; without splits the rows are divided evenly.
template <class T>
Received<T> alltoall(const T* data, size_t rows, size_t row_elements,
                     const std::vector<int64_t>& splits = {}, const Options& options = {}) {
  static_assert(!std::is_same<T, bool>::value, "std::vector<bool> is packed: use uint8_t");
  const internal::Tensor<T> in(data, rows, row_elements);
  const hvd_options_t made = internal::MakeOptions(options);
  internal::Result result;
  const int32_t ranks = hvd_process_set_size(options.process_set);
  Received<T> received;
  received.splits.resize(ranks > 0 ? static_cast<size_t>(ranks) : 0);
  internal::ThrowIfError(hvd_alltoall(in.get(), splits.empty() ? nullptr : splits.data(),
                                      static_cast<int32_t>(splits.size()), nullptr, &made,
                                      result.get(), received.splits.data()));
  received.data = result.Copy<T>();
  return received;
}

// ---- broadcast, barrier, join ----

// Copies the root's `count` elements into every rank's `data`. `root` is a rank of the job.
template <class T>
void broadcast(T* data, size_t count, int root = 0, const std::string& name = {}) {
  const internal::Tensor<T> tensor(data, count);
  hvd_options_t options = internal::MakeOptions(name);
  options.root = root;
  internal::ThrowIfError(hvd_broadcast(tensor.get(), tensor.get(), &options));
}
// Every rank's vector must already have the root's length.
template <class T>
void broadcast(std::vector<T>& data, int root = 0, const std::string& name = {}) {
  broadcast(data.data(), data.size(), root, name);
}
template <class T>
Handle broadcast_async(T* data, size_t count, int root = 0, const std::string& name = {}) {
  const internal::Tensor<T> tensor(data, count);
  hvd_options_t options = internal::MakeOptions(name);
  options.root = root;
  hvd_handle_t handle = 0;
  internal::ThrowIfError(hvd_broadcast_async(tensor.get(), tensor.get(), &options, &handle));
  return Handle(handle);
}
template <class T>
Handle broadcast_async(std::vector<T>& data, int root = 0, const std::string& name = {}) {
  return broadcast_async(data.data(), data.size(), root, name);
}

// Returns when every rank has called it and all that this rank submitted before is done.
inline void barrier() { internal::ThrowIfError(hvd_barrier(nullptr)); }

// This rank has no more work: takes part in the others' allreduces and allgathers, with nothing of
// its own, until every rank has joined. Returns the rank that did last.
inline int join() {
  int32_t last = -1;
  internal::ThrowIfError(hvd_join(&last));
  return last;
}

}  // namespace hvd
