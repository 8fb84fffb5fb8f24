// SPDX-License-Identifier: Apache-2.0
// The agreement's messages between hosts. Leaders stand in a tree: reports go up and are merged on
// the way, decisions come down. They travel over the data plane's transport, in the protobuf wire
// format. Pure.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/engine/agreement/board/report.h"

namespace hvd::rt {

// Up: all ranks below have asked for this. Tensors that the root has decided before have an id, and
// then usually nothing but that travels.
struct UpReport {
  uint64_t id = 0;    // 0: it goes by its name
  std::string name;   // only without an id
  bool same = false;  // as agreed the last time: the report has no signature then
  Report report;
};

// Down: run it, or fail it with this text.
struct Decision {
  uint64_t id = 0;
  std::string name;            // with a new id, or without one
  bool has_signature = false;  // else as agreed the last time
  Signature signature;
  std::string error;
  std::vector<int64_t> rows;  // by global rank
  int contributors = 0;       // 0: all
  int64_t result = -1;
};

// A rank that will ask for nothing more, and what it has asked for and not seen done.
struct LeftNote {
  int rank = 0;
  std::vector<std::string> names;
};

// All that one host has to tell its parent or its children at one time.
struct AgreementMessage {
  // Up: reports that are `same`, of all ranks below, and have no rows; then all others.
  std::vector<uint64_t> same_ids;
  std::vector<UpReport> reports;
  std::vector<LeftNote> lefts;
  bool has_retired = false;  // answers `retired`: no earlier id comes from below any more
  bool bye = false;          // all below have read the last decision
  // Down: a batch. Ids that are not used again: whatever is known of them is forgotten.
  std::vector<Decision> decisions;
  std::vector<uint64_t> retired;
  // Both: the epoch is broken, and this is why.
  std::string aborted;
  int abort_rank = -1;  // AbortCause::rank

  bool empty() const {
    return same_ids.empty() && reports.empty() && lefts.empty() && !has_retired && !bye &&
           decisions.empty() && retired.empty() && aborted.empty();
  }
};

std::string EncodeAgreement(const AgreementMessage& message);
// Unparsable bytes, or values no rank can have sent (kinds, dimensions): InvalidArgument.
absl::StatusOr<AgreementMessage> DecodeAgreement(std::string_view bytes);

}  // namespace hvd::rt
