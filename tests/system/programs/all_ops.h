// SPDX-License-Identifier: Apache-2.0
// The parts of all_ops: each checks its operations on every rank, and ends the program when
// something is wrong.
#pragma once

#include "tests/system/programs/checks.h"

void CheckScattered(const Dtype& dtype);  // reduce-scatter, alltoall
void CheckGroups();
void CheckOptions();  // scales, compression
void CheckAdasum();
void CheckProcessSets();
