// SPDX-License-Identifier: Apache-2.0
// What every call checks of its tensors and options. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "runtime/check/check.h"

namespace hvd::rt {

// `what`: the argument's name, for messages.
absl::Status CheckTensor(const hvd_tensor_t* tensor, const char* what);
// Memory for the tensor's elements, or NULL when it has none.
absl::Status CheckData(const hvd_tensor_t& tensor, const char* what);
// "on GPU 1"
std::string PlaceOf(const hvd_tensor_t& tensor);
bool SamePlace(const hvd_tensor_t& a, const hvd_tensor_t& b);
size_t ElementsOf(const hvd_tensor_t& tensor);
// From dimension `from` on; dtypes too.
bool SameShape(const hvd_tensor_t& a, const hvd_tensor_t& b, int from);

// Checks a group whose tensors are right each by itself: none may write what another reads or
// writes.
absl::Status CheckGroupMemory(const GroupCall& call);

// Null is none. Not too long, and not one of hvd's own (IsReserved).
absl::Status CheckName(const char* name);
// The fields that fit `kind`; and each value by itself.
absl::Status CheckOptions(const hvd_options_t& options, RequestKind kind);
// How the end of a call is to be told, which only an asynchronous one can want.
absl::Status CheckTelling(const hvd_options_t& options, bool asynchronous);
// Puts into `signature` what the options say about a reduction of its type.
absl::Status PutReduction(const hvd_options_t& options, Signature* signature);

}  // namespace hvd::rt
