// SPDX-License-Identifier: Apache-2.0
// Elastic jobs for hvd.hpp, which includes it: members come and go, and what was committed stays.
//
//   hvd::Session session;
//   std::vector<float> weights = ...;
//   int64_t batch = 0;
//   hvd::State state;
//   state.add("weights", weights);
//   state.add("batch", &batch, 1);
//   const bool finished = hvd::elastic::run(state, [&] {
//     for (; batch < batches; ++batch) {
//       if (batch % 10 == 0) state.commit();
//       ...  // a step of training, with hvd's collectives
//     }
//   });
//
// After members have died, `run` begins with the committed state; the count of the steps therefore
// belongs to the state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "hvd/hvd.h"
#include "hvd/types.hpp"

namespace hvd {

// The epoch that this process is in: see hvd_epoch_t.
struct Epoch {
  uint64_t number = 0;
  uint64_t commit = 0;
  int rank = -1;
  int size = 0;
  int survivors = 0;
  bool is_new = false;
  bool sync = false;
  int root = -1;
  bool rolls_back = false;
  bool needs_state = false;
};

namespace internal {

inline Epoch ReadEpoch(const hvd_epoch_t& from) {
  Epoch epoch;
  epoch.number = from.number;
  epoch.commit = from.commit;
  epoch.rank = from.rank;
  epoch.size = from.size;
  epoch.survivors = from.survivors;
  epoch.is_new = from.is_new != 0;
  epoch.sync = from.sync != 0;
  epoch.root = from.root;
  epoch.rolls_back = from.rolls_back != 0;
  epoch.needs_state = from.needs_state != 0;
  return epoch;
}

}  // namespace internal

inline Epoch epoch() {
  hvd_epoch_t epoch = HVD_EPOCH_INIT;
  internal::ThrowIfError(hvd_epoch(&epoch));
  return internal::ReadEpoch(epoch);
}
// Leaves the epoch, broken or not, and joins the next. Throws Removed when there is none for this
// process.
inline Epoch reset() {
  hvd_epoch_t epoch = HVD_EPOCH_INIT;
  internal::ThrowIfError(hvd_reset(nullptr, &epoch));
  return internal::ReadEpoch(epoch);
}
// All ranks call it; throws HostsUpdated on all of them when the members are to change.
inline void check_hosts() { internal::ThrowIfError(hvd_check_hosts()); }
// Which share of its host this process has, for its life: -1 before init().
inline int slot() { return hvd_slot(); }
inline bool is_elastic() { return hvd_is_elastic() != 0; }

enum class StateKind : int32_t {
  kReplicated = HVD_STATE_REPLICATED,  // the same bits on all ranks
  kFirst = HVD_STATE_FIRST,            // that of the host's first rank counts
  kPrivate = HVD_STATE_PRIVATE,        // each rank's own, never sent to others
};

// The state that a program goes on with: see hvd_state_create. One at a time in a process.
// Move-only.
class State {
 public:
  State() { internal::ThrowIfError(hvd_state_create(&state_)); }
  State(State&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  State& operator=(State&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~State() { hvd_state_destroy(state_); }

  // `count` elements at `data`, which stay the caller's and where they are.
  template <class T>
  void add(const std::string& name, T* data, size_t count,
           StateKind kind = StateKind::kReplicated) {
    const internal::Tensor<T> tensor(data, count);
    internal::ThrowIfError(
        hvd_state_add(state_, name.c_str(), tensor.get(), static_cast<int32_t>(kind)));
  }
  template <class T>
  void add(const std::string& name, std::vector<T>& data, StateKind kind = StateKind::kReplicated) {
    add(name, data.data(), data.size(), kind);
  }
  void remove(const std::string& name) {
    internal::ThrowIfError(hvd_state_remove(state_, name.c_str()));
  }
  // Bytes under a name; get() is empty when there are none.
  void put(const std::string& name, const std::string& bytes) {
    internal::ThrowIfError(hvd_state_put(state_, name.c_str(), bytes.data(), bytes.size()));
  }
  std::string get(const std::string& name) const {
    const void* data = nullptr;
    size_t bytes = 0;
    internal::ThrowIfError(hvd_state_get(state_, name.c_str(), &data, &bytes));
    return bytes == 0 ? std::string() : std::string(static_cast<const char*>(data), bytes);
  }

  // All ranks call it at the same point. Throws HostsUpdated when the members are to change: the
  // commit is complete then, too.
  uint64_t commit() {
    uint64_t number = 0;
    internal::ThrowIfError(hvd_state_commit(state_, &number));
    return number;
  }
  // This rank alone goes back to the newest commit; returns its number.
  uint64_t restore() {
    uint64_t number = 0;
    internal::ThrowIfError(hvd_state_restore(state_, &number));
    return number;
  }
  // All ranks call it, after init() and after every reset(): see hvd_state_sync.
  void sync() { internal::ThrowIfError(hvd_state_sync(state_)); }

  hvd_state_t* c_state() const { return state_; }

 private:
  hvd_state_t* state_ = nullptr;
};

namespace elastic {

// Called in each epoch but the first, once this process is in it and before the state is synced:
// for what depends on rank and size.
using OnReset = std::function<void(const Epoch&)>;

namespace internal {

// One more call of `body` on the epoch's members. True: it has come to its end; false: the epoch is
// to be left.
template <class Body>
bool RunOnce(State* state, Body& body) {
  try {
    state->sync();
    body();
    return true;
  } catch (const HostsUpdated&) {
  } catch (const Error& error) {
    if (error.code() != HVD_ERR_ABORTED || !is_elastic()) throw;
  }
  return false;
}

}  // namespace internal

// Brings everybody to the same state and calls `body()`, again and again until one call has come to
// its end: true. When members have died, or are to come or go, what `body` had called throws;
// `body` lets it through, and is called anew in the next epoch. False: this process has been
// removed. Throws what `body` throws otherwise; in a job that is not elastic also what a member's
// death is.
template <class Body>
bool run(State& state, Body body, const OnReset& on_reset = nullptr) {
  try {
    while (!internal::RunOnce(&state, body)) {
      for (;;) {
        try {
          const Epoch next = reset();
          if (on_reset) on_reset(next);
          break;
        } catch (const HostsUpdated&) {  // by on_reset: this epoch is to be left, too
        } catch (const Error& error) {
          if (error.code() != HVD_ERR_ABORTED) throw;  // broken already: the next
        }
      }
    }
  } catch (const Removed&) {
    return false;
  }
  return true;
}

}  // namespace elastic
}  // namespace hvd
