// What a rank wants done: the value that travels from the C ABI through agreement to execution.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "hvd/hvd.h"

namespace hvd {

enum class RequestKind : uint32_t { kAllreduce = 1, kAllgather, kBroadcast, kBarrier, kLeave };
const char* KindName(RequestKind kind);
const char* DtypeName(hvd_dtype_t dtype);
const char* OpName(hvd_op_t op);

inline constexpr int kMaxDimensions = 16;

// What all ranks must agree on. Plain bytes: it also lies in the hosts' shared memory.
struct Signature {
  RequestKind kind = RequestKind::kBarrier;
  uint32_t dtype = 0;
  uint32_t op = 0;
  int32_t root = 0;
  uint32_t device_type = HVD_CPU;
  int32_t ndim = 0;
  std::array<int64_t, kMaxDimensions> shape{};

  int64_t rows() const { return ndim > 0 ? shape[0] : 0; }
  size_t elements() const;      // 1 for a scalar
  size_t row_elements() const;  // elements in one row of the first dimension
};

// "allreduce float32 [64,10] sum"
std::string Describe(const Signature& signature);

// A submitted request. Owned by the submitter (blocking call) or the handle table; the engine
// borrows it from submit until `done`.
struct Request {
  std::string name;  // as given; generated for an unnamed one
  bool unnamed = false;
  Signature signature;
  const void* input = nullptr;
  void* output = nullptr;  // null for an allgather whose result the library allocates
  // For an allgather with the caller's output: its rows.
  int64_t output_rows = 0;

  // Written by the executor before `done`.
  absl::Status status;
  void* owned_result = nullptr;  // malloc'ed; the caller of wait_result takes it
  std::vector<int64_t> result_shape;
  std::atomic<bool> done{false};

  Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request();
};

}  // namespace hvd
