// SPDX-License-Identifier: Apache-2.0
// Runs one agreed request on the collectives: one function a kind, in execute_*.cc.
//
// A rank whose own output does not fit still takes part: the others are in the exchange already.
// Its result is then dropped, and it alone gets the error.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/collective/collectives.h"
#include "runtime/engine/agreement/board/log_entry.h"

namespace hvd::rt {

struct Execution {
  Request* request = nullptr;
  const LogEntry& entry;
  Collectives* collectives = nullptr;  // for the tensors
  Collectives* sizes = nullptr;        // for sizes that only the ranks know: in the host's memory
};

// Executes what this rank asked for: sets its results and its status, which says what is wrong with
// the request itself, on this rank or on all. An error that is returned ends the epoch: the ranks
// have lost one another. The same holds for all functions that follow.
absl::Status ExecuteRequest(const Execution& work);
// The same for a rank that has joined and brings nothing.
absl::Status ExecuteAbsent(const LogEntry& entry, Collectives* collectives);

absl::Status ExecuteReduceScatter(const Execution& work);
absl::Status ExecuteAllgather(const Execution& work);
absl::Status ExecuteGroupedAllgather(const Execution& work);
absl::Status ExecuteAlltoall(const Execution& work);

// Adasum of a group needs its tensors' sizes, which a rank that has joined does not know. When
// there is such a rank, the ranks that know the sizes tell them, and all call this. The joined
// rank, with parts that count 0, gets them.
absl::Status TellCounts(const Execution& work, absl::Span<ReducePart> parts);

// The sizes that a grouped allgather's ranks tell of each tensor.
struct RowsAndBytes {
  int64_t rows = 0;
  int64_t row_bytes = 0;  // 0 also from a rank that has joined
};
// All ranks' one after the other. `mine`: one a tensor.
absl::StatusOr<std::vector<RowsAndBytes>> ExchangeRows(absl::Span<const RowsAndBytes> mine,
                                                       Collectives* collectives);

// Where a result goes: the caller's output if it fits, else memory of our own.
struct ResultPlace {
  const void* input = nullptr;
  void* output = nullptr;  // the caller's, or null
  int64_t output_rows = 0;
  void** owned_result = nullptr;
  std::vector<int64_t>* result_shape = nullptr;
  ResultSource source = {};  // of the caller's, and what it must know
  uint32_t dtype = 0;
  int position = 0;
  decltype(RequestResult::allocate_owned) allocate = nullptr;  // of memory of our own
  int device = 0;
};
struct ResultSize {
  absl::Span<const int64_t> shape;  // but for the rows
  int64_t rows = 0;
  size_t bytes = 0;
  // An allgather's place for this rank's own rows, which may be there already.
  size_t own_at = 0, own_bytes = 0;
};
// `what` names the operation in an error. FailedPrecondition when the output does not fit, or an
// allgather's input lies in it where other rows come; *result is usable then too. Throws without
// memory, as everything does.
absl::Status PlaceResult(absl::FunctionRef<std::string()> what, const ResultPlace& place,
                         const ResultSize& size, void** result);
ResultPlace PlaceOf(Request* request);
ResultPlace PlaceOf(const Request& request, RequestPart* part);
// "allgather 'x'", "allgather 'unnamed call 7'"
std::string NameOf(const Request& request);

}  // namespace hvd::rt
