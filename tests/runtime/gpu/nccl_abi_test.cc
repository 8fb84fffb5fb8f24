// SPDX-License-Identifier: Apache-2.0
// Compiled where NCCL's header is: what runtime/gpu/nccl_library.h declares by hand is what NCCL
// has.
#include <nccl.h>

#include <catch2/catch.hpp>
#include <cstddef>

#include "runtime/gpu/nccl_library.h"
#include "tests/runtime/gpu/same_abi.h"

namespace hvd::rt {
namespace {

#define HVD_SAME(mine, real) \
  STATIC_REQUIRE(SameCall<decltype(NcclFunctions::mine), decltype(&real)>::value)

TEST_CASE("NCCL's functions are declared as its header has them") {
  HVD_SAME(version, ncclGetVersion);
  HVD_SAME(error_string, ncclGetErrorString);
  HVD_SAME(last_error, ncclGetLastError);
  HVD_SAME(make_id, ncclGetUniqueId);
  HVD_SAME(init_rank, ncclCommInitRankConfig);
  HVD_SAME(async_error, ncclCommGetAsyncError);
  HVD_SAME(finalize, ncclCommFinalize);
  HVD_SAME(destroy, ncclCommDestroy);
  HVD_SAME(abort, ncclCommAbort);
  HVD_SAME(group_start, ncclGroupStart);
  HVD_SAME(group_end, ncclGroupEnd);
  HVD_SAME(all_reduce, ncclAllReduce);
  HVD_SAME(reduce, ncclReduce);
  HVD_SAME(broadcast, ncclBroadcast);
  HVD_SAME(all_gather, ncclAllGather);
  HVD_SAME(reduce_scatter, ncclReduceScatter);
  HVD_SAME(send, ncclSend);
  HVD_SAME(receive, ncclRecv);
  HVD_SAME(make_scaled_sum, ncclRedOpCreatePreMulSum);
  HVD_SAME(destroy_op, ncclRedOpDestroy);
  HVD_SAME(register_memory, ncclCommRegister);
  HVD_SAME(deregister_memory, ncclCommDeregister);
}

TEST_CASE("NCCL's settings begin as its header has them") {
  STATIC_REQUIRE(sizeof(NcclId) == sizeof(ncclUniqueId));
  STATIC_REQUIRE(sizeof(NcclConfig) <= sizeof(ncclConfig_t));
  CHECK(offsetof(NcclConfig, magic) == offsetof(ncclConfig_t, magic));
  CHECK(offsetof(NcclConfig, version) == offsetof(ncclConfig_t, version));
  CHECK(offsetof(NcclConfig, blocking) == offsetof(ncclConfig_t, blocking));
  CHECK(offsetof(NcclConfig, min_ctas) == offsetof(ncclConfig_t, minCTAs));
  CHECK(offsetof(NcclConfig, max_ctas) == offsetof(ncclConfig_t, maxCTAs));
  CHECK(offsetof(NcclConfig, net_name) == offsetof(ncclConfig_t, netName));
  CHECK(offsetof(NcclConfig, split_share) == offsetof(ncclConfig_t, splitShare));
  const ncclConfig_t real = NCCL_CONFIG_INITIALIZER;
  const NcclConfig mine;
  CHECK(mine.magic == real.magic);
  CHECK(mine.blocking == real.blocking);
  CHECK(mine.split_share == real.splitShare);
}

TEST_CASE("NCCL's numbers are its header's") {
  CHECK(int{kNcclInProgress} == int{ncclInProgress});
  CHECK(int{kNcclRemoteError} == int{ncclRemoteError});
  CHECK(int{kNcclInvalidUsage} == int{ncclInvalidUsage});
  CHECK(int{kNcclInvalidArgument} == int{ncclInvalidArgument});
  CHECK(int{kNcclInternalError} == int{ncclInternalError});
  CHECK(int{kNcclSystemError} == int{ncclSystemError});
  CHECK(int{kNcclCudaError} == int{ncclUnhandledCudaError});
  CHECK(int{kNcclInt8} == int{ncclInt8});
  CHECK(int{kNcclUint8} == int{ncclUint8});
  CHECK(int{kNcclInt32} == int{ncclInt32});
  CHECK(int{kNcclUint32} == int{ncclUint32});
  CHECK(int{kNcclInt64} == int{ncclInt64});
  CHECK(int{kNcclUint64} == int{ncclUint64});
  CHECK(int{kNcclFloat16} == int{ncclFloat16});
  CHECK(int{kNcclFloat32} == int{ncclFloat32});
  CHECK(int{kNcclFloat64} == int{ncclFloat64});
  CHECK(int{kNcclBfloat16} == int{ncclBfloat16});
  CHECK(int{kNcclSum} == int{ncclSum});
  CHECK(int{kNcclProd} == int{ncclProd});
  CHECK(int{kNcclMax} == int{ncclMax});
  CHECK(int{kNcclMin} == int{ncclMin});
  CHECK(int{kNcclAvg} == int{ncclAvg});
  CHECK(int{kNcclScalarOnHost} == int{ncclScalarHostImmediate});
  CHECK(int{kNcclScalarOnDevice} == int{ncclScalarDevice});
}

}  // namespace
}  // namespace hvd::rt
