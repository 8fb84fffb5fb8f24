// SPDX-License-Identifier: Apache-2.0
// The parts of errors: each provokes what may be asked wrongly, and ends the program when hvd's
// answer is not the right one.
#pragma once

#include "tests/system/programs/checks.h"

// The options and the name that a rank asks with.
struct Ask {
  hvd_options_t options = HVD_OPTIONS_INIT;
  std::string name;
};

// Each submits float32 tensors, if nothing else is said, and returns the status.
hvd_status_t Allreduce(Ask* ask, const char* dtype, std::vector<int64_t> shape);
hvd_status_t Gather(Ask* ask, std::vector<int64_t> shape);
hvd_status_t Alltoall(Ask* ask, std::vector<int64_t> shape);
hvd_status_t Scatter(Ask* ask, std::vector<int64_t> shape);
hvd_status_t Broadcast(Ask* ask, std::vector<int64_t> shape);
hvd_status_t Grouped(Ask* ask, int tensors, int64_t elements);

void MustStillWork(const std::string& what);

void CheckMismatches();
void CheckWhileJoined();
