// SPDX-License-Identifier: Apache-2.0
// NVIDIA's collectives between GPUs, libnccl: the part of its ABI that is used here, declared by
// hand, so that no header of NCCL's is needed to build. A test compares it with the real header.
// From NCCL 2.18 on; what came later is null where it is missing.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/gpu/cuda_driver.h"
#include "runtime/gpu/shared_library.h"

namespace hvd::rt {

struct NcclCommunicatorObject;
using NcclCommunicator = NcclCommunicatorObject*;

// By which the ranks of a communicator find one another. Passed by value.
struct NcclId {
  char bytes[128];
};

enum NcclResult : int {
  kNcclSuccess = 0,
  kNcclCudaError = 1,
  kNcclSystemError = 2,
  kNcclInternalError = 3,
  kNcclInvalidArgument = 4,
  kNcclInvalidUsage = 5,
  kNcclRemoteError = 6,
  kNcclInProgress = 7,
};

enum NcclType : int {
  kNcclInt8 = 0,
  kNcclUint8 = 1,
  kNcclInt32 = 2,
  kNcclUint32 = 3,
  kNcclInt64 = 4,
  kNcclUint64 = 5,
  kNcclFloat16 = 6,
  kNcclFloat32 = 7,
  kNcclFloat64 = 8,
  kNcclBfloat16 = 9,
};

enum NcclOp : int { kNcclSum = 0, kNcclProd = 1, kNcclMax = 2, kNcclMin = 3, kNcclAvg = 4 };

enum NcclResidence : int { kNcclScalarOnDevice = 0, kNcclScalarOnHost = 1 };

inline constexpr int kNcclUndefined = -2147483647 - 1;  // "NCCL decides", of an int
inline constexpr unsigned kNcclMagic = 0xcafebeef;

// As NCCL 2.18 had it: a newer library knows by `size` and `version` what is not there.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = kNcclMagic;
  unsigned version = 21800;
  int blocking = kNcclUndefined;
  int cga_cluster_size = kNcclUndefined;
  int min_ctas = kNcclUndefined;
  int max_ctas = kNcclUndefined;
  const char* net_name = nullptr;
  int split_share = kNcclUndefined;
};

// Counts are of elements.
struct NcclFunctions {
  NcclResult (*version)(int* version);  // 22809: 2.28.9
  const char* (*error_string)(NcclResult result);
  const char* (*last_error)(NcclCommunicator communicator);

  NcclResult (*make_id)(NcclId* id);
  NcclResult (*init_rank)(NcclCommunicator* communicator, int ranks, NcclId id, int rank,
                          NcclConfig* config);
  NcclResult (*async_error)(NcclCommunicator communicator, NcclResult* error);
  NcclResult (*finalize)(NcclCommunicator communicator);
  NcclResult (*destroy)(NcclCommunicator communicator);
  NcclResult (*abort)(NcclCommunicator communicator);

  NcclResult (*group_start)();
  NcclResult (*group_end)();
  NcclResult (*all_reduce)(const void* from, void* to, size_t count, NcclType type, NcclOp op,
                           NcclCommunicator communicator, CudaStream stream);
  NcclResult (*reduce)(const void* from, void* to, size_t count, NcclType type, NcclOp op, int root,
                       NcclCommunicator communicator, CudaStream stream);
  NcclResult (*broadcast)(const void* from, void* to, size_t count, NcclType type, int root,
                          NcclCommunicator communicator, CudaStream stream);
  NcclResult (*all_gather)(const void* from, void* to, size_t count, NcclType type,
                           NcclCommunicator communicator, CudaStream stream);
  NcclResult (*reduce_scatter)(const void* from, void* to, size_t count, NcclType type, NcclOp op,
                               NcclCommunicator communicator, CudaStream stream);
  NcclResult (*send)(const void* from, size_t count, NcclType type, int peer,
                     NcclCommunicator communicator, CudaStream stream);
  NcclResult (*receive)(void* to, size_t count, NcclType type, int peer,
                        NcclCommunicator communicator, CudaStream stream);
  NcclResult (*make_scaled_sum)(NcclOp* op, void* scalar, NcclType type, NcclResidence residence,
                                NcclCommunicator communicator);
  NcclResult (*destroy_op)(NcclOp op, NcclCommunicator communicator);

  // From 2.19 on.
  NcclResult (*register_memory)(NcclCommunicator communicator, void* address, size_t bytes,
                                void** handle);
  NcclResult (*deregister_memory)(NcclCommunicator communicator, void* handle);
};

// Where NCCL is looked for, in this order.
struct NcclPlaces {
  std::string named;                    // HVD_NCCL_LIBRARY: this one and no other; empty: not set
  std::vector<std::string> beside;      // paths of pip's package, near libhvd
  std::string system = "libnccl.so.2";  // first where this process has it loaded
};

class NcclLibrary {
 public:
  static constexpr int kOldest = 21800;

  // NotFound: none of the places has one; says what each answered. Unimplemented: it is too old.
  static absl::StatusOr<NcclLibrary> Load(const NcclPlaces& places);

  const NcclFunctions& calls() const { return calls_; }
  int version() const { return version_; }
  const std::string& path() const { return library_.path(); }
  // OK, or NCCL's words: FailedPrecondition where another rank is to blame. kNcclInProgress is no
  // error here. `communicator` may be null.
  absl::Status Check(NcclResult result, const char* what, NcclCommunicator communicator) const;

 private:
  NcclLibrary() = default;
  static absl::StatusOr<SharedLibrary> Find(const NcclPlaces& places);
  absl::Status FindFunctions();

  SharedLibrary library_;
  NcclFunctions calls_ = {};
  int version_ = 0;
};

// "2.28.9"
std::string NcclVersionText(int version);

}  // namespace hvd::rt
