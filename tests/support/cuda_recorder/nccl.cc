// SPDX-License-Identifier: Apache-2.0
// libnccl.so.2 that records. The loader finds functions that only younger ones have in the real
// library, or does not.
#include "tests/support/cuda_recorder/recorder.h"

#define HVD_RECORD_NCCL(symbol, entry) \
  HVD_RECORD("libhvd_recorded_nccl.so.2", symbol, NcclFunctions, entry)

HVD_RECORD_NCCL(ncclGetVersion, version)
HVD_RECORD_NCCL(ncclGetErrorString, error_string)
HVD_RECORD_NCCL(ncclGetLastError, last_error)
HVD_RECORD_NCCL(ncclGetUniqueId, make_id)
HVD_RECORD_NCCL(ncclCommInitRankConfig, init_rank)
HVD_RECORD_NCCL(ncclCommGetAsyncError, async_error)
HVD_RECORD_NCCL(ncclCommFinalize, finalize)
HVD_RECORD_NCCL(ncclCommDestroy, destroy)
HVD_RECORD_NCCL(ncclCommAbort, abort)
HVD_RECORD_NCCL(ncclGroupStart, group_start)
HVD_RECORD_NCCL(ncclGroupEnd, group_end)
HVD_RECORD_NCCL(ncclAllReduce, all_reduce)
HVD_RECORD_NCCL(ncclReduce, reduce)
HVD_RECORD_NCCL(ncclBroadcast, broadcast)
HVD_RECORD_NCCL(ncclAllGather, all_gather)
HVD_RECORD_NCCL(ncclReduceScatter, reduce_scatter)
HVD_RECORD_NCCL(ncclSend, send)
HVD_RECORD_NCCL(ncclRecv, receive)
HVD_RECORD_NCCL(ncclRedOpCreatePreMulSum, make_scaled_sum)
HVD_RECORD_NCCL(ncclRedOpDestroy, destroy_op)
