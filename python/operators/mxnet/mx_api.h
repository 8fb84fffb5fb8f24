// SPDX-License-Identifier: Apache-2.0
// MXNet's C API and what its engine hands out: the part that is used here, declared by hand, so
// that no header of MXNet's is needed to build. A test compares it with the real headers.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace hvd::mx {

using NDArrayHandle = void*;  // an mxnet::NDArray

// mxnet::Context, of which hvd takes the CPU's.
struct Context {
  int32_t type;
  int32_t id;
};
inline constexpr int kCpu = 1;
inline constexpr int kGpu = 2;

inline constexpr int kDefaultStorage = 0;  // else a sparse one

// mxnet::FnProperty: begun by threads that do nothing long, in the order of priorities.
inline constexpr int kCpuPrioritized = 3;

// mshadow::TypeFlag
enum TypeFlag : int {
  kFloat32 = 0,
  kFloat64 = 1,
  kFloat16 = 2,
  kUint8 = 3,
  kInt32 = 4,
  kInt8 = 5,
  kInt64 = 6,
  kBool = 7,
  kInt16 = 8,
  kUint16 = 9,
  kUint32 = 10,
  kUint64 = 11,
  kBfloat16 = 12,
};

// mxnet::engine::CallbackOnComplete: tells the engine that an operation has ended. It may be
// copied, and called on any thread. The engine copies the error: a dmlc::Error, which is a
// runtime_error.
struct OnComplete {
  void (*callback)(void* engine, void* operation, const std::runtime_error* error);
  void* engine;
  void* operation;

  void operator()(const std::runtime_error* error) const { callback(engine, operation, error); }
};

// A function that the engine calls: `on_complete` is an OnComplete*, and the caller's.
using AsyncFunction = void (*)(void* run_context, void* on_complete, void* param);
using Deleter = void (*)(void* param);

// libmxnet's functions by their own names. 0 is success.
struct Api {
  const char* (*MXGetLastError)();
  int (*MXShallowCopyNDArray)(NDArrayHandle source, NDArrayHandle* copy);
  int (*MXNDArrayCreateEx64)(const int64_t* shape, int ndim, int device_type, int device_id,
                             int delay_allocation, int type, NDArrayHandle* made);
  int (*MXNDArrayFree)(NDArrayHandle array);
  int (*MXNDArrayGetShapeEx64)(NDArrayHandle array, int* ndim, const int64_t** shape);
  int (*MXNDArrayGetData)(NDArrayHandle array, void** data);
  int (*MXNDArrayGetDType)(NDArrayHandle array, int* type);
  int (*MXNDArrayGetContext)(NDArrayHandle array, int* device_type, int* device_id);
  int (*MXNDArrayGetStorageType)(NDArrayHandle array, int* storage);
  int (*MXNDArrayWaitToRead)(NDArrayHandle array);
  int (*MXEnginePushAsyncND)(AsyncFunction function, void* param, Deleter deleter, void* context,
                             NDArrayHandle* read, int read_count, NDArrayHandle* written,
                             int written_count, void* property, int priority, const char* name,
                             bool wait);

  // Functions for oneDNN, whose kernels may leave an array in a layout of their own: null where
  // MXNet was built without. MXNDArrayGetData waits for the engine then, which an operation of the
  // engine's must not. They are C++: of mxnet::NDArray and of its Chunk.
  bool (*IsOwnLayout)(const void* chunk);
  void (*ToDefaultLayout)(void* chunk);
  void* (*InDefaultLayout)(void* room, const void* array);  // the copy is made in `room`
  void (*Destroy)(void* array);
};
inline constexpr int kArrayBytes =
    224;  // of an mxnet::NDArray, which begins with its chunk's address

// Takes libmxnet's functions from `path`, which the process has loaded. Empty: they are there; else
// why not.
std::string Load(const char* path, Api* api);

// The functions of this process's libmxnet.
extern Api mxnet;

}  // namespace hvd::mx
