// SPDX-License-Identifier: Apache-2.0
#include "runtime/gpu/nccl_library.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace hvd::rt {

// A framework's own comes first: two NCCLs in a process would each take the GPU's memory for
// themselves, and see nothing of one another's rings.
absl::StatusOr<SharedLibrary> NcclLibrary::Find(const NcclPlaces& places) {
  if (!places.named.empty()) {
    auto named = SharedLibrary::Open(places.named);
    if (named.ok()) return named;
    return absl::NotFoundError(
        absl::StrCat("HVD_NCCL_LIBRARY is ", places.named, ": ", named.status().message()));
  }
  return SharedLibrary::OpenFirst(places.system, places.beside);
}

absl::StatusOr<NcclLibrary> NcclLibrary::Load(const NcclPlaces& places) {
  auto library = Find(places);
  if (!library.ok()) return library.status();
  NcclLibrary nccl;
  nccl.library_ = *std::move(library);
  if (absl::Status found = nccl.FindFunctions(); !found.ok()) return found;
  absl::Status known = nccl.Check(nccl.calls_.version(&nccl.version_), "ncclGetVersion", nullptr);
  if (!known.ok()) return known;
  if (nccl.version_ >= kOldest) return nccl;
  return absl::UnimplementedError(absl::StrCat(nccl.path(), " is NCCL ",
                                               NcclVersionText(nccl.version_), "; hvd needs ",
                                               NcclVersionText(kOldest), " or later"));
}

absl::Status NcclLibrary::FindFunctions() {
  SymbolLoader load(library_);
  load.Must("ncclGetVersion", &calls_.version);
  load.Must("ncclGetErrorString", &calls_.error_string);
  load.Must("ncclGetLastError", &calls_.last_error);
  load.Must("ncclGetUniqueId", &calls_.make_id);
  load.Must("ncclCommInitRankConfig", &calls_.init_rank);
  load.Must("ncclCommGetAsyncError", &calls_.async_error);
  load.Must("ncclCommFinalize", &calls_.finalize);
  load.Must("ncclCommDestroy", &calls_.destroy);
  load.Must("ncclCommAbort", &calls_.abort);
  load.Must("ncclGroupStart", &calls_.group_start);
  load.Must("ncclGroupEnd", &calls_.group_end);
  load.Must("ncclAllReduce", &calls_.all_reduce);
  load.Must("ncclReduce", &calls_.reduce);
  load.Must("ncclBroadcast", &calls_.broadcast);
  load.Must("ncclAllGather", &calls_.all_gather);
  load.Must("ncclReduceScatter", &calls_.reduce_scatter);
  load.Must("ncclSend", &calls_.send);
  load.Must("ncclRecv", &calls_.receive);
  load.Must("ncclRedOpCreatePreMulSum", &calls_.make_scaled_sum);
  load.Must("ncclRedOpDestroy", &calls_.destroy_op);
  load.May("ncclCommRegister", &calls_.register_memory);
  load.May("ncclCommDeregister", &calls_.deregister_memory);
  return load.status();
}

absl::Status NcclLibrary::Check(NcclResult result, const char* what,
                                NcclCommunicator communicator) const {
  if (result == kNcclSuccess || result == kNcclInProgress) return absl::OkStatus();
  std::string text = absl::StrCat(what, ": ", calls_.error_string(result));
  const char* more = calls_.last_error(communicator);
  if (more != nullptr && *more != '\0') absl::StrAppend(&text, ": ", more);
  return result == kNcclRemoteError ? absl::FailedPreconditionError(text)
                                    : absl::UnavailableError(text);
}

// Before 2.9 a version was 2708 for 2.7.8.
std::string NcclVersionText(int version) {
  const int major = version < 10000 ? version / 1000 : version / 10000;
  const int rest = version < 10000 ? version % 1000 : version % 10000;
  return absl::StrCat(major, ".", rest / 100, ".", rest % 100);
}

}  // namespace hvd::rt
