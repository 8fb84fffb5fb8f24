// SPDX-License-Identifier: Apache-2.0
#include "runtime/gpu/communicator.h"

#include <utility>

namespace hvd::rt {

absl::StatusOr<NcclId> Communicator::MakeId(const NcclLibrary& nccl) {
  NcclId id;
  absl::Status made = nccl.Check(nccl.calls().make_id(&id), "ncclGetUniqueId", nullptr);
  if (!made.ok()) return made;
  return id;
}

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Start(const NcclLibrary* nccl,
                                                                  const Place& place) {
  std::unique_ptr<Communicator> made(new Communicator(nccl));
  NcclConfig config;
  config.blocking = 0;
  const NcclResult result =
      nccl->calls().init_rank(&made->handle_, place.ranks, place.id, place.rank, &config);
  if (absl::Status begun = nccl->Check(result, "ncclCommInitRankConfig", nullptr); !begun.ok()) {
    return begun;
  }
  return made;
}

Communicator::~Communicator() { Abort(); }

absl::StatusOr<bool> Communicator::IsReady() const {
  NcclResult state = kNcclSuccess;
  const NcclResult asked = nccl_.calls().async_error(handle_, &state);
  for (const NcclResult result : {asked, state}) {
    absl::Status fine = nccl_.Check(result, "ncclCommGetAsyncError", handle_);
    if (!fine.ok()) return fine;
  }
  return state != kNcclInProgress;
}

absl::Status Communicator::BeginEnd() {
  return nccl_.Check(nccl_.calls().finalize(handle_), "ncclCommFinalize", handle_);
}

absl::Status Communicator::End() {
  const NcclResult result = nccl_.calls().destroy(std::exchange(handle_, nullptr));
  return nccl_.Check(result, "ncclCommDestroy", nullptr);
}

// NCCL's answer changes nothing: there is no other way to end the communicator.
void Communicator::Abort() {
  if (handle_ != nullptr) (void)nccl_.calls().abort(std::exchange(handle_, nullptr));
}

}  // namespace hvd::rt
