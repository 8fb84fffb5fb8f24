// SPDX-License-Identifier: Apache-2.0
// hvd_state_*: checks, and a State behind the pointer.
#include <atomic>
#include <cstring>
#include <memory>

#include "runtime/api/process/process.h"
#include "runtime/check/check_tensor.h"
#include "runtime/check/struct_sizes.h"
#include "runtime/errors/errors.h"
#include "runtime/state/elastic/state.h"

struct hvd_state_t {
  explicit hvd_state_t(const hvd::rt::StateParts& parts) : state(parts) {}
  hvd::rt::State state;
};

namespace hvd::rt {
namespace {

std::atomic<bool> has_state{false};  // in this process: commits of several would not fit together

StateHome& Home() { return Process::Get().state_home(); }

hvd_status_t CheckState(const hvd_state_t* state) {
  if (state == nullptr) return Fail(HVD_ERR_INVALID, "state is NULL");
  return Process::forked() ? NotInitialized() : HVD_OK;  // the mutex may be held for ever
}

hvd_status_t CheckNamed(const hvd_state_t* state, const char* name) {
  if (const hvd_status_t code = CheckState(state); code != HVD_OK) return code;
  if (name == nullptr || *name == '\0') return Fail(HVD_ERR_INVALID, "name is empty");
  return Return(CheckName(name));
}

hvd_status_t Add(hvd_state_t* state, const char* name, const hvd_tensor_t* tensor, int32_t kind) {
  if (const hvd_status_t code = CheckNamed(state, name); code != HVD_OK) return code;
  absl::Status fine = CheckTensor(tensor, "tensor");
  if (fine.ok()) fine = CheckData(*tensor, "tensor");
  if (!fine.ok()) return Return(fine);
  if (kind < HVD_STATE_REPLICATED || kind > HVD_STATE_PRIVATE) {
    return Fail(HVD_ERR_INVALID, "kind is the unknown " + std::to_string(kind));
  }
  const MutexLock lock(&Home().mutex());
  return Return(state->state.entries().Add(name, *tensor, kind));
}

hvd_status_t Entry(const hvd_state_t* state, int32_t index, hvd_state_entry_t* entry) {
  if (const hvd_status_t code = CheckState(state); code != HVD_OK) return code;
  if (entry == nullptr) return Fail(HVD_ERR_INVALID, "entry is NULL");
  if (absl::Status fits = CheckSize("entry", *entry); !fits.ok()) return Return(fits);
  const MutexLock lock(&Home().mutex());
  const StateEntries& entries = state->state.entries();
  const auto* const found = index < 0 ? nullptr : entries.At(static_cast<size_t>(index));
  if (found == nullptr) {
    return Fail(HVD_ERR_INVALID, "the state has no tensor " + std::to_string(index) + "; it has " +
                                     std::to_string(entries.tensors().size()));
  }
  const auto& [name, tensor] = *found;
  *entry = {sizeof(*entry), name.c_str(), tensor.tensor, tensor.kind, tensor.is_held ? 1 : 0};
  return HVD_OK;
}

}  // namespace
}  // namespace hvd::rt

extern "C" {

hvd_status_t hvd_state_create(hvd_state_t** state) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    if (state == nullptr) return hvd::rt::Fail(HVD_ERR_INVALID, "state is NULL");
    *state = nullptr;
    if (hvd::rt::Process::forked()) return hvd::rt::NotInitialized();
    hvd::rt::Process& process = hvd::rt::Process::Get();
    auto made = std::make_unique<hvd_state_t>(
        hvd::rt::StateParts{&process.state_home(), &process.sets(), &process.devices().gpus()});
    if (hvd::rt::has_state.exchange(true)) {
      return hvd::rt::Fail(HVD_ERR_UNSUPPORTED,
                           "this process has a state already; add to that, or destroy it first");
    }
    *state = made.release();
    return HVD_OK;
  });
}

hvd_status_t hvd_state_add(hvd_state_t* state, const char* name, const hvd_tensor_t* tensor,
                           int32_t kind) {
  return hvd::rt::Guarded([&] { return hvd::rt::Add(state, name, tensor, kind); });
}

hvd_status_t hvd_state_remove(hvd_state_t* state, const char* name) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    if (const hvd_status_t code = hvd::rt::CheckNamed(state, name); code != HVD_OK) return code;
    const hvd::MutexLock lock(&hvd::rt::Home().mutex());
    return hvd::rt::Return(state->state.entries().Remove(name));
  });
}

hvd_status_t hvd_state_put(hvd_state_t* state, const char* name, const void* data, size_t bytes) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    if (const hvd_status_t code = hvd::rt::CheckNamed(state, name); code != HVD_OK) return code;
    if (data == nullptr && bytes > 0) return hvd::rt::Fail(HVD_ERR_INVALID, "data is NULL");
    std::string copy = bytes > 0 ? std::string(static_cast<const char*>(data), bytes) : "";
    const hvd::MutexLock lock(&hvd::rt::Home().mutex());
    return hvd::rt::Return(state->state.entries().Put(name, std::move(copy)));
  });
}

hvd_status_t hvd_state_get(const hvd_state_t* state, const char* name, const void** data,
                           size_t* bytes) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    if (const hvd_status_t code = hvd::rt::CheckNamed(state, name); code != HVD_OK) return code;
    if (data == nullptr || bytes == nullptr) {
      return hvd::rt::Fail(HVD_ERR_INVALID, "data or bytes is NULL");
    }
    const hvd::MutexLock lock(&hvd::rt::Home().mutex());
    const std::string* const found = state->state.entries().Get(name);
    *data = found == nullptr ? nullptr : found->data();
    *bytes = found == nullptr ? 0 : found->size();
    return HVD_OK;
  });
}

hvd_status_t hvd_state_commit(hvd_state_t* state, uint64_t* number) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    const hvd_status_t code = hvd::rt::CheckState(state);
    return code == HVD_OK ? state->state.Commit(hvd::rt::CommitBy::kProgram, number) : code;
  });
}

hvd_status_t hvd_state_keep(hvd_state_t* state, uint64_t* number) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    const hvd_status_t code = hvd::rt::CheckState(state);
    return code == HVD_OK ? state->state.Commit(hvd::rt::CommitBy::kSync, number) : code;
  });
}

hvd_status_t hvd_state_restore(hvd_state_t* state, uint64_t* number) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    const hvd_status_t code = hvd::rt::CheckState(state);
    return code == HVD_OK ? state->state.Restore(number) : code;
  });
}

hvd_status_t hvd_state_sync(hvd_state_t* state) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    const hvd_status_t code = hvd::rt::CheckState(state);
    return code == HVD_OK ? state->state.Sync() : code;
  });
}

hvd_status_t hvd_state_count(const hvd_state_t* state, int32_t* count) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    if (const hvd_status_t code = hvd::rt::CheckState(state); code != HVD_OK) return code;
    if (count == nullptr) return hvd::rt::Fail(HVD_ERR_INVALID, "count is NULL");
    const hvd::MutexLock lock(&hvd::rt::Home().mutex());
    *count = static_cast<int32_t>(state->state.entries().tensors().size());
    return HVD_OK;
  });
}

hvd_status_t hvd_state_entry(const hvd_state_t* state, int32_t index, hvd_state_entry_t* entry) {
  return hvd::rt::Guarded([&] { return hvd::rt::Entry(state, index, entry); });
}

// In the child of a fork, too: it has a copy, and the mutex may be held there for ever.
void hvd_state_destroy(hvd_state_t* state) {
  if (state == nullptr) return;
  if (hvd::rt::Process::forked()) {
    delete state;
  } else {
    const hvd::MutexLock lock(&hvd::rt::Home().mutex());  // a commit on another thread uses it
    delete state;
  }
  hvd::rt::has_state.store(false);
}

}  // extern "C"
