// SPDX-License-Identifier: Apache-2.0
// The process sets of the C ABI, and joins, which concern all of them.
#include <algorithm>

#include "runtime/api/calls.h"
#include "runtime/api/process/process.h"
#include "runtime/check/check_tensor.h"

namespace hvd::rt {
namespace {

// Horovod's jobs may say that their sets are fixed; then a stray change is an error on every rank.
hvd_status_t CheckChange() {
  const auto engine = Process::Get().engine();  // not kept: a shutdown ends it
  if (engine == nullptr) return NotInitialized();
  if (engine->config().dynamic_process_sets) return HVD_OK;
  return Fail(HVD_ERR_UNSUPPORTED,
              "HVD_DYNAMIC_PROCESS_SETS=0 forbids to add or remove process sets; give them to "
              "hvd_init, or unset it");
}

ProcessSets::SetPointer FindSet(int32_t id) {
  Process& process = Process::Get();
  return process.engine() != nullptr ? process.sets().Find(id) : nullptr;
}

absl::Status CheckJoin(const hvd_options_t* given, hvd_options_t* options) {
  if (absl::Status read = ReadOptions(given, options); !read.ok()) return read;
  if (absl::Status told = CheckTelling(*options, true); !told.ok()) return told;
  if (options->name != nullptr && options->name[0] != '\0') {
    return absl::InvalidArgumentError("options.name: a join has none; a rank has one at a time");
  }
  if (options->process_set != HVD_GLOBAL_PROCESS_SET) {
    return absl::InvalidArgumentError(
        "options.process_set: a rank joins in all its process sets at once; leave it at 0");
  }
  if (options->flags != 0) {
    return absl::InvalidArgumentError("options.flags is for collectives only");
  }
  if (options->ready_event != nullptr) {
    return absl::InvalidArgumentError("options.ready_event is for tensors on a GPU");
  }
  return CheckOptions(*options, RequestKind::kJoin);
}

// `ready` as of ProcessSets::Join.
absl::Status SubmitJoin(const std::shared_ptr<Pending>& join, absl::FunctionRef<void()> ready) {
  Process& process = Process::Get();
  const JoinTurn turn(&process.sets().joins());
  if (!turn.taken()) {
    return absl::FailedPreconditionError("this rank has joined already; its join has not returned");
  }
  if (HostWay* const way = process.devices().used_host_way(); way != nullptr) way->HandOver();
  const absl::StatusOr<size_t> submitted = process.sets().Join(join, ready);
  if (!submitted.ok()) return submitted.status();
  const size_t kept_back = join->requests.size() - *submitted;
  const bool is_told = kept_back == 0 || join->UntellLast(kept_back);
  return is_told ? absl::OkStatus() : join->requests.back()->result.status;
}

hvd_status_t SubmitJoinAs(const std::shared_ptr<Pending>& join, const hvd_options_t& options,
                          hvd_handle_t* handle) {
  *handle = 0;
  const absl::Status status = SubmitJoin(join, [&] {
    *handle = Process::Get().handles().Add(join);
    Pending::Tell(join, options, *handle);
  });
  if (status.ok()) return HVD_OK;
  join->Untell();
  Process::Get().handles().Remove(*handle);
  return ReturnExecuted(status);
}

}  // namespace
}  // namespace hvd::rt

extern "C" {

hvd_status_t hvd_add_process_set(const int32_t* ranks, int32_t n, int32_t* set) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    if (set == nullptr) return hvd::rt::Fail(HVD_ERR_INVALID, "set is NULL");
    if (ranks == nullptr) return hvd::rt::Fail(HVD_ERR_INVALID, "ranks is NULL");
    if (n < 1)
      return hvd::rt::Fail(HVD_ERR_INVALID, "n is " + std::to_string(n) + "; at least one");
    if (const hvd_status_t code = hvd::rt::CheckChange(); code != HVD_OK) return code;
    return hvd::rt::Return(
        hvd::rt::Process::Get().sets().Add({ranks, static_cast<size_t>(n)}, set));
  });
}

hvd_status_t hvd_add_process_set_members(const int32_t* ranks, int32_t n, const char* key,
                                         int32_t* set) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    if (set == nullptr) return hvd::rt::Fail(HVD_ERR_INVALID, "set is NULL");
    if (ranks == nullptr) return hvd::rt::Fail(HVD_ERR_INVALID, "ranks is NULL");
    if (n < 1)
      return hvd::rt::Fail(HVD_ERR_INVALID, "n is " + std::to_string(n) + "; at least one");
    if (const hvd_status_t code = hvd::rt::CheckChange(); code != HVD_OK) return code;
    return hvd::rt::Return(hvd::rt::Process::Get().sets().AddMembers(
        {ranks, static_cast<size_t>(n)}, key == nullptr ? "" : key, set));
  });
}

hvd_status_t hvd_remove_process_set(int32_t set) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    if (const hvd_status_t code = hvd::rt::CheckChange(); code != HVD_OK) return code;
    return hvd::rt::Return(hvd::rt::Process::Get().sets().Remove(set));
  });
}

int32_t hvd_process_set_rank(int32_t set) {
  const auto found = hvd::rt::FindSet(set);
  return found == nullptr ? -1 : found->index;
}

int32_t hvd_process_set_size(int32_t set) {
  const auto found = hvd::rt::FindSet(set);
  return found == nullptr ? -1 : static_cast<int32_t>(found->ranks.size());
}

hvd_status_t hvd_process_set_ranks(int32_t set, int32_t* ranks) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    if (ranks == nullptr) return hvd::rt::Fail(HVD_ERR_INVALID, "ranks is NULL");
    if (hvd::rt::Process::Get().engine() == nullptr) return hvd::rt::NotInitialized();
    const auto found = hvd::rt::FindSet(set);
    if (found == nullptr) {
      return hvd::rt::Fail(HVD_ERR_INVALID,
                           "process set " + std::to_string(set) + " does not exist");
    }
    std::copy(found->ranks.begin(), found->ranks.end(), ranks);
    return HVD_OK;
  });
}

int32_t hvd_process_set_count(void) {
  hvd::rt::Process& process = hvd::rt::Process::Get();
  return process.engine() == nullptr ? -1 : static_cast<int32_t>(process.sets().ids().size());
}

hvd_status_t hvd_process_set_ids(int32_t* ids, int32_t capacity, int32_t* count) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    if (count == nullptr) return hvd::rt::Fail(HVD_ERR_INVALID, "count is NULL");
    if (ids == nullptr && capacity > 0) return hvd::rt::Fail(HVD_ERR_INVALID, "ids is NULL");
    if (hvd::rt::Process::Get().engine() == nullptr) return hvd::rt::NotInitialized();
    const std::vector<int32_t> all = hvd::rt::Process::Get().sets().ids();
    *count = static_cast<int32_t>(all.size());
    std::copy_n(all.begin(), std::clamp(capacity, 0, *count), ids);
    return HVD_OK;
  });
}

hvd_status_t hvd_join(int32_t* last_rank) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    if (hvd::rt::Process::Get().engine() == nullptr) return hvd::rt::NotInitialized();
    const auto join = std::make_shared<hvd::rt::Pending>();
    absl::Status status = hvd::rt::SubmitJoin(join, [] {});
    if (status.ok()) status = hvd::rt::WaitFor(*join);
    const hvd_status_t code = hvd::rt::ReturnExecuted(status);
    if (code == HVD_OK)
      hvd::rt::GiveResults(join->requests[0].get(), {nullptr, nullptr, last_rank});
    return code;
  });
}

hvd_status_t hvd_join_async(const hvd_options_t* options, hvd_handle_t* handle) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    if (handle == nullptr) return hvd::rt::Fail(HVD_ERR_INVALID, "handle is NULL");
    hvd_options_t known;
    const absl::Status checked = hvd::rt::CheckJoin(options, &known);
    if (!checked.ok()) return hvd::rt::Return(checked);
    if (hvd::rt::Process::Get().engine() == nullptr) return hvd::rt::NotInitialized();
    return hvd::rt::SubmitJoinAs(std::make_shared<hvd::rt::Pending>(), known, handle);
  });
}

}  // extern "C"
