// SPDX-License-Identifier: Apache-2.0
// How much the job's key-value store takes, and what is wrong with a request by itself. Pure.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "store/store_words.h"

namespace hvd {

inline constexpr size_t kMostKeyBytes = 4096;
inline constexpr size_t kMostValueBytes = size_t{16} << 20;
inline constexpr size_t kMostWaitBytes = size_t{1} << 20;  // of all keys of one wait
// The most bytes that all keys and values take, with what each key costs besides.
inline constexpr size_t kMostStoreBytes = size_t{256} << 20;
inline constexpr size_t kKeyCostBytes = 128;
// An encoded request or answer: two values (compare_set), and some words.
inline constexpr size_t kMostStoreMessage = 2 * kMostValueBytes + 2 * kMostWaitBytes;
// Calls of one rank that are under way at once: a connection to hvdd each.
inline constexpr int kMostStoreCalls = 256;

// InvalidArgument names what is wrong and what is allowed. Whoever asks looks first, so that
// nothing is sent in vain, and the store itself, since others may ask it, too.
absl::Status CheckStoreValue(const StoreRequest& request, size_t bytes);
absl::Status CheckStoreRequest(const StoreRequest& request);

}  // namespace hvd
