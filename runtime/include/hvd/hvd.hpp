// SPDX-License-Identifier: Apache-2.0
// hvd for C++17: headers over the C ABI (hvd.h), nothing to link but libhvd. This one includes the
// others.
//
//   hvd::Session session;  // joins the job; leaves it at the end of the scope
//   std::vector<float> gradient = ...;
//   hvd::allreduce(gradient, hvd::Op::kAverage, "gradient");  // in place, the same bits everywhere
//
// Every call that can fail throws hvd::Error. Every function may be called from any thread; what
// must agree between the ranks is said in hvd.h. Counts are elements, never bytes. Data lies in
// host memory.
//
// A collective takes a pointer and a count, a std::vector, or anything else with data() and size();
// and after it what is asked for most (op, root, name), or an hvd::Options with all there is.
//
// Names tell which calls of different ranks belong together, so that ranks may submit in different
// orders; calls without a name are matched by their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "hvd/allreduce.hpp"
#include "hvd/elastic.hpp"
#include "hvd/exchange.hpp"
#include "hvd/groups.hpp"
#include "hvd/handle.hpp"
#include "hvd/hvd.h"
#include "hvd/memory.hpp"
#include "hvd/ranges.hpp"
#include "hvd/sets.hpp"
#include "hvd/store.hpp"
#include "hvd/types.hpp"

namespace hvd {

// ---- the job ----

// Joins the job that started this process and returns when all ranks have; alone, without hvdrun,
// the size is 1. Throws HVD_ERR_LAUNCH when the launcher's link is broken.
inline void init() { internal::ThrowIfError(hvd_init(nullptr)); }
// Leaves it, once every rank does.
inline void shutdown() { internal::ThrowIfError(hvd_shutdown()); }
inline bool is_initialized() { return hvd_is_initialized() != 0; }

// Each is -1 outside a session.
inline int rank() { return hvd_rank(); }              // of the job
inline int size() { return hvd_size(); }              // ranks of the job
inline int local_rank() { return hvd_local_rank(); }  // on this host
inline int local_size() { return hvd_local_size(); }
inline int cross_rank() {
  return hvd_cross_rank();
}  // of this host among those with this local rank
inline int cross_size() { return hvd_cross_size(); }
inline bool is_homogeneous() { return hvd_is_homogeneous() == 1; }  // every host has as many ranks

// init() and shutdown() as a scope. When the scope is left by an exception, the ranks leave it one
// by one and hvdrun reports the first; an error of the shutdown itself has nobody to go to then.
// Collectives in flight do not hold it back: see Handle and Gradients.
class Session {
 public:
  Session() { init(); }
  ~Session() { hvd_shutdown(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
};

// ---- barrier, join ----

// Returns when every rank has called it and all that this rank submitted before is done.
inline void barrier() { internal::ThrowIfError(hvd_barrier(nullptr)); }

// This rank has no more work: takes part in the others' allreduces and allgathers, with nothing of
// its own, until every rank has joined. Returns the rank that did last.
inline int join() {
  int32_t last = -1;
  internal::ThrowIfError(hvd_join(&last));
  return last;
}
// The same in flight. Until it is done this rank can submit nothing.
inline JoinHandle join_async() {
  hvd_handle_t handle = 0;
  internal::ThrowIfError(hvd_join_async(nullptr, &handle));
  return JoinHandle(handle);
}

// ---- seeing inside ----

// Says how long this rank needs between TERM and its end; see hvd_set_grace.
inline void set_grace(double seconds) { internal::ThrowIfError(hvd_set_grace(seconds)); }

// hvdrun writes what every rank does from now on to `path`; see hvd_start_timeline. Any rank may
// ask.
inline void start_timeline(const std::string& path) {
  internal::ThrowIfError(hvd_start_timeline(path.c_str()));
}
// Returns when the file is complete.
inline void stop_timeline() { internal::ThrowIfError(hvd_stop_timeline()); }

// Counters and histograms of this rank, as JSON.
inline std::string metrics() {
  size_t bytes = 0;
  internal::ThrowIfError(hvd_metrics(nullptr, &bytes));
  std::string text;
  hvd_status_t status = HVD_ERR_INVALID;
  // They may have grown since; `bytes` is what is needed then.
  for (int tries = 0; tries < 10 && status == HVD_ERR_INVALID; ++tries) {
    text.resize(bytes += 64);
    status = hvd_metrics(&text[0], &bytes);
  }
  internal::ThrowIfError(status);
  text.resize(bytes - 1);  // without the NUL
  return text;
}

}  // namespace hvd
