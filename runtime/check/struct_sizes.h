// SPDX-License-Identifier: Apache-2.0
// The one table of the sizes that a caller's structs may have. Programs that were built with an
// older hvd.h bring shorter ones: what they lack has its default. A longer one is from a newer
// header, whose further fields this library does not know: they might ask for something, so it is
// refused.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "hvd/hvd.h"

namespace hvd::rt {

template <class Struct>
inline constexpr auto kAcceptedSizes = std::array{sizeof(Struct)};

// Frozen: what tensors need more, options bring.
static_assert(sizeof(hvd_tensor_t) == 48);

template <>
inline constexpr auto kAcceptedSizes<hvd_options_t> =
    std::array{offsetof(hvd_options_t, prescale),  offsetof(hvd_options_t, done),
               offsetof(hvd_options_t, result_fn), offsetof(hvd_options_t, ready_event),
               offsetof(hvd_options_t, contents),  sizeof(hvd_options_t)};

template <>
inline constexpr auto kAcceptedSizes<hvd_init_options_t> =
    std::array{offsetof(hvd_init_options_t, process_sets), sizeof(hvd_init_options_t)};

template <>
inline constexpr auto kAcceptedSizes<hvd_bucket_options_t> =
    std::array{offsetof(hvd_bucket_options_t, device_type), sizeof(hvd_bucket_options_t)};

template <>
inline constexpr auto kAcceptedSizes<hvd_epoch_t> =
    std::array{offsetof(hvd_epoch_t, is_over), sizeof(hvd_epoch_t)};

// InvalidArgument names the struct (`what`) and both sizes.
template <class Struct>
absl::Status CheckSize(const char* what, const Struct& given) {
  const auto& sizes = kAcceptedSizes<Struct>;
  if (std::find(sizes.begin(), sizes.end(), given.struct_size) != sizes.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(std::string(what) + ".struct_size is " +
                                    std::to_string(given.struct_size) + ", this libhvd knows " +
                                    std::to_string(sizeof(Struct)) +
                                    "; initialise the struct with its HVD_*_INIT");
}

// Over the defaults that are in `known` already. Null: only those.
template <class Struct>
absl::Status CopyKnown(const char* what, const Struct* given, Struct* known) {
  if (given == nullptr) return absl::OkStatus();
  if (absl::Status fits = CheckSize(what, *given); !fits.ok()) return fits;
  std::memcpy(known, given, given->struct_size);
  known->struct_size = sizeof(*known);
  return absl::OkStatus();
}

}  // namespace hvd::rt
