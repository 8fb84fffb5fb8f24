// hvd for C++17: a header over the C ABI (hvd.h), nothing to link but libhvd.
//
//   hvd::Session session;                                    // joins the job; leaves it at the end
//   of the scope std::vector<float> gradient = ...; hvd::allreduce(gradient, hvd::Op::kAverage,
//   "gradient");  // in place; every rank ends with the same bits
//
// Every call that can fail throws hvd::Error. Every function may be called from any thread; what
// must agree between the ranks is said in hvd.h. Counts are elements, never bytes. Data lies in
// host memory.
//
// Names tell which calls of different ranks belong together, so that ranks may submit in different
// orders; calls without a name are matched by their order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "hvd/hvd.h"

namespace hvd {

// What a failed call throws. what() is the whole message: what failed, where, and what to do next.
class Error : public std::runtime_error {
 public:
  Error(hvd_status_t code, const std::string& message) : std::runtime_error(message), code_(code) {}
  // HVD_ERR_ABORTED: a peer died or left. HVD_ERR_MISMATCH: the ranks asked for different things;
  // hvd goes on working. The others: see hvd.h.
  hvd_status_t code() const noexcept { return code_; }

 private:
  hvd_status_t code_;
};

enum class Op : int32_t {
  kAverage = HVD_AVERAGE,
  kSum = HVD_SUM,
  kAdasum = HVD_ADASUM,
  kMin = HVD_MIN,
  kMax = HVD_MAX,
  kProduct = HVD_PRODUCT,
};

// How floats of 32 and 64 bits travel.
enum class Compression : int32_t {
  kNone = HVD_COMPRESSION_NONE,
  kFloat16 = HVD_COMPRESSION_FP16,
  kBfloat16 = HVD_COMPRESSION_BF16,
};

// All that a collective can be told; the functions without it take the part that is asked for most.
// What an operation has no use for must stay as it is.
struct Options {
  std::string name;
  int process_set = HVD_GLOBAL_PROCESS_SET;
  Op op = Op::kAverage;
  double prescale = 1;
  double postscale = 1;
  Compression compression = Compression::kNone;
  bool average_over_contributors = false;  // not over ranks that have joined
};

// 16-bit floats as bits: they travel and are summed (in float32); arithmetic is the caller's
// business.
struct float16 {
  uint16_t bits;
};
struct bfloat16 {
  uint16_t bits;
};

// The hvd_dtype_t of a C++ type. Types that hvd cannot reduce have no value and do not compile.
template <class T>
struct dtype_of;
template <>
struct dtype_of<uint8_t> : std::integral_constant<hvd_dtype_t, HVD_UINT8> {};
template <>
struct dtype_of<int8_t> : std::integral_constant<hvd_dtype_t, HVD_INT8> {};
template <>
struct dtype_of<int16_t> : std::integral_constant<hvd_dtype_t, HVD_INT16> {};
template <>
struct dtype_of<int32_t> : std::integral_constant<hvd_dtype_t, HVD_INT32> {};
template <>
struct dtype_of<int64_t> : std::integral_constant<hvd_dtype_t, HVD_INT64> {};
template <>
struct dtype_of<float16> : std::integral_constant<hvd_dtype_t, HVD_FLOAT16> {};
template <>
struct dtype_of<bfloat16> : std::integral_constant<hvd_dtype_t, HVD_BFLOAT16> {};
template <>
struct dtype_of<float> : std::integral_constant<hvd_dtype_t, HVD_FLOAT32> {};
template <>
struct dtype_of<double> : std::integral_constant<hvd_dtype_t, HVD_FLOAT64> {};
template <>
struct dtype_of<bool> : std::integral_constant<hvd_dtype_t, HVD_BOOL> {
  static_assert(sizeof(bool) == 1, "hvd's bool is one byte");
};

namespace internal {

inline void ThrowIfError(hvd_status_t status) {
  if (status != HVD_OK) throw Error(status, hvd_last_error());
}

// A tensor of one dimension (or of rows × row_elements) over the caller's memory. `shape` is part
// of it, so it stays where it was made.
template <class T>
class Tensor {
 public:
  Tensor(const T* data, size_t count) : Tensor(data, count, 1, 1) {}
  Tensor(const T* data, size_t rows, size_t row_elements) : Tensor(data, rows, row_elements, 2) {}
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  const hvd_tensor_t* get() const { return &tensor_; }

 private:
  // hvd_tensor_t serves as input and as output and so holds a plain pointer; inputs are only read.
  Tensor(const T* data, size_t rows, size_t row_elements, int32_t ndim)
      : shape_{static_cast<int64_t>(rows), static_cast<int64_t>(row_elements)} {
    tensor_.data = const_cast<T*>(data);
    tensor_.shape = shape_.data();
    tensor_.ndim = ndim;
    tensor_.dtype = dtype_of<T>::value;
  }

  std::array<int64_t, 2> shape_;
  hvd_tensor_t tensor_ = HVD_TENSOR_INIT;
};

inline hvd_options_t MakeOptions(const std::string& name) {
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.name = name.c_str();  // copied by the call it is passed to
  return options;
}

// `options` must live as long as the result: its name is not copied here.
inline hvd_options_t MakeOptions(const Options& options) {
  hvd_options_t made = MakeOptions(options.name);
  made.process_set = options.process_set;
  made.op = static_cast<int32_t>(options.op);
  made.prescale = options.prescale;
  made.postscale = options.postscale;
  made.compression = static_cast<int32_t>(options.compression);
  made.flags = options.average_over_contributors ? HVD_AVERAGE_OVER_CONTRIBUTORS : 0;
  return made;
}

}  // namespace internal

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

// ---- handles ----

// A collective in flight. Until it is done, the memory given to it belongs to hvd: so the
// destructor waits (and swallows the error; call wait() to see it). Move-only; one thread at a
// time.
class [[nodiscard]] Handle {
 public:
  Handle() = default;
  explicit Handle(hvd_handle_t handle) : handle_(handle) {}
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, 0)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      finish();
      handle_ = std::exchange(other.handle_, 0);
    }
    return *this;
  }
  ~Handle() { finish(); }

  // True while there is something to wait for.
  bool valid() const { return handle_ != 0; }
  // True when wait() would not block; of an empty handle too.
  bool poll() const {
    int32_t done = 1;
    if (valid()) internal::ThrowIfError(hvd_poll(handle_, &done));
    return done != 0;
  }
  // Returns when the result is there, or throws what went wrong. The handle is empty afterwards.
  void wait() {
    if (valid()) internal::ThrowIfError(hvd_wait(std::exchange(handle_, 0)));
  }

 private:
  void finish() noexcept {
    if (valid()) hvd_wait(std::exchange(handle_, 0));
  }

  hvd_handle_t handle_ = 0;
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

// All of them in place, as one, under one name.
template <class T>
void grouped_allreduce(const std::vector<std::vector<T>*>& tensors, const Options& options = {}) {
  std::vector<int64_t> counts;
  for (const std::vector<T>* tensor : tensors) {
    counts.push_back(static_cast<int64_t>(tensor->size()));
  }
  std::vector<hvd_tensor_t> inputs(tensors.size(), HVD_TENSOR_INIT);
  for (size_t i = 0; i < tensors.size(); ++i) {
    inputs[i].data = tensors[i]->data();
    inputs[i].shape = &counts[i];
    inputs[i].ndim = 1;
    inputs[i].dtype = dtype_of<T>::value;
  }
  const hvd_options_t made = internal::MakeOptions(options);
  internal::ThrowIfError(
      hvd_grouped_allreduce(inputs.data(), nullptr, static_cast<int32_t>(inputs.size()), &made));
}

// ---- allgather ----

namespace internal {

// Owns what the library allocated for an allgather.
class Result {
 public:
  Result() = default;
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;
  ~Result() { hvd_free_result(&tensor_); }
  hvd_tensor_t* get() { return &tensor_; }

  template <class T>
  std::vector<T> Copy() const {
    size_t count = 1;
    for (int32_t i = 0; i < tensor_.ndim; ++i) count *= static_cast<size_t>(tensor_.shape[i]);
    const T* data = static_cast<const T*>(tensor_.data);
    return count == 0 ? std::vector<T>() : std::vector<T>(data, data + count);
  }

 private:
  hvd_tensor_t tensor_ = HVD_TENSOR_INIT;
};

}  // namespace internal

// An allgather in flight; like Handle, but wait() returns the gathered elements.
template <class T>
class [[nodiscard]] GatherHandle {
 public:
  GatherHandle() = default;
  explicit GatherHandle(hvd_handle_t handle) : handle_(handle) {}
  GatherHandle(GatherHandle&& other) noexcept : handle_(std::exchange(other.handle_, 0)) {}
  GatherHandle& operator=(GatherHandle&& other) noexcept {
    if (this != &other) {
      finish();
      handle_ = std::exchange(other.handle_, 0);
    }
    return *this;
  }
  ~GatherHandle() { finish(); }

  bool valid() const { return handle_ != 0; }
  bool poll() const {
    int32_t done = 1;
    if (valid()) internal::ThrowIfError(hvd_poll(handle_, &done));
    return done != 0;
  }
  // The ranks' elements, in rank order; empty for an empty handle.
  std::vector<T> wait() {
    internal::Result result;
    if (!valid()) return {};
    internal::ThrowIfError(hvd_wait_result(std::exchange(handle_, 0), result.get()));
    return result.Copy<T>();
  }

 private:
  void finish() noexcept {
    internal::Result unwanted;
    if (valid()) hvd_wait_result(std::exchange(handle_, 0), unwanted.get());
  }

  hvd_handle_t handle_ = 0;
};

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
// Of a process set.
inline void barrier(int process_set) {
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.process_set = process_set;
  internal::ThrowIfError(hvd_barrier(&options));
}

// This rank has no more work: takes part in the others' allreduces and allgathers, with nothing of
// its own, until every rank has joined. Returns the rank that did last.
inline int join() {
  int32_t last = -1;
  internal::ThrowIfError(hvd_join(&last));
  return last;
}

// ---- process sets ----

// Every rank of the job calls it with the same ranks; returns the new set's number.
inline int add_process_set(const std::vector<int32_t>& ranks) {
  int32_t set = -1;
  internal::ThrowIfError(
      hvd_add_process_set(ranks.data(), static_cast<int32_t>(ranks.size()), &set));
  return set;
}
inline void remove_process_set(int set) { internal::ThrowIfError(hvd_remove_process_set(set)); }
inline int process_set_rank(int set) { return hvd_process_set_rank(set); }  // -1: no member
inline int process_set_size(int set) { return hvd_process_set_size(set); }  // -1: no such set

}  // namespace hvd

#include "hvd/memory.hpp"  // Buffer, Gradients
