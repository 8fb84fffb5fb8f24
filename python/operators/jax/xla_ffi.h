// SPDX-License-Identifier: Apache-2.0
// XLA's foreign function interface, version 0.3: the part of its stable C ABI that is used here,
// declared by hand under hvd's own names, so that no header of jaxlib's is needed to build. A test
// compares it with the real header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hvd::xla {

inline constexpr int kMajorVersion = 0;
inline constexpr int kMinorVersion = 3;  // the oldest that has futures

struct Error;             // XLA's
struct Future;            // XLA's
struct ExecutionContext;  // XLA's

struct Extension {
  size_t struct_size;
  int type;
  Extension* next;
};
inline constexpr int kMetadataExtension = 1;

struct ApiVersion {
  size_t struct_size;
  Extension* extensions;
  int major_version;
  int minor_version;
};

// The answer that XLA asks of a handler when it is registered.
struct Metadata {
  size_t struct_size;
  ApiVersion api_version;
  uint32_t traits;
  int64_t state_type;
};
struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

enum ErrorCode : int { kInvalidArgument = 3, kAborted = 10, kInternal = 13 };

struct ErrorCreateArgs {
  size_t struct_size;
  Extension* extensions;
  const char* message;
  ErrorCode code;
};

struct FutureCreateArgs {
  size_t struct_size;
  Extension* extensions;
  Future* future;  // out
};
struct FutureSetAvailableArgs {
  size_t struct_size;
  Extension* extensions;
  Future* future;
};
struct FutureSetErrorArgs {
  size_t struct_size;
  Extension* extensions;
  Future* future;
  Error* error;  // XLA's from then on
};

struct RunIdGetArgs {
  size_t struct_size;
  Extension* extensions;
  ExecutionContext* context;
  int64_t run_id;  // out
};

enum DataType : int {
  kPred = 1,
  kS8 = 2,
  kS16 = 3,
  kS32 = 4,
  kS64 = 5,
  kU8 = 6,
  kU16 = 7,
  kU32 = 8,
  kU64 = 9,
  kF16 = 10,
  kF32 = 11,
  kF64 = 12,
  kC64 = 15,
  kBf16 = 16,
  kC128 = 18,
  kF8E5m2 = 19,
  kF8E4m3fn = 20,
};

struct Buffer {
  size_t struct_size;
  Extension* extensions;
  DataType dtype;
  void* data;
  int64_t rank;
  int64_t* dims;
};

// Text that no zero ends.
struct Span {
  const char* data;
  size_t size;
};
struct Scalar {
  DataType dtype;
  void* value;
};

enum AttributeType : int { kScalarAttribute = 3, kStringAttribute = 4 };

// The buffers of arguments, or of results.
struct Buffers {
  size_t struct_size;
  Extension* extensions;
  int64_t size;
  int* types;
  Buffer** buffers;
};
struct Attributes {
  size_t struct_size;
  Extension* extensions;
  int64_t size;
  AttributeType* types;
  Span** names;
  void** values;  // Span or Scalar
};

// XLA's functions, in its order; those that nothing here calls are only counted.
struct Api {
  size_t struct_size;
  Extension* extensions;
  ApiVersion version;
  const void* internal;
  Error* (*error_create)(ErrorCreateArgs* args);
  void* between[12];
  Error* (*future_create)(FutureCreateArgs* args);
  Error* (*future_set_available)(FutureSetAvailableArgs* args);
  Error* (*future_set_error)(FutureSetErrorArgs* args);
  // Behind the end of what older ones have: see struct_size.
  Error* (*run_id_get)(RunIdGetArgs* args);
};

inline constexpr int kExecuteStage = 3;

// A call of a handler. Arguments, results and attributes live until `future`, where the handler
// has set one, has ended.
struct CallFrame {
  size_t struct_size;
  Extension* extensions;
  const Api* api;
  ExecutionContext* context;
  int stage;
  Buffers arguments;
  Buffers results;
  Attributes attributes;
  Future* future;  // out
};

}  // namespace hvd::xla
