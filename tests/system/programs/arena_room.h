// SPDX-License-Identifier: Apache-2.0
// What tensors in hvd's memory take of a rank's address space, and what becomes of a job where
// there is none. Each returns what the process exits with.
#pragma once

// Says in MB what hvd has taken more than the process had: after a small sum, and after one of a
// gigabyte.
int GrowRoom();
// Rank 1 may have no tensor of a gigabyte: it says what it is told, and all go on with small ones.
int ScarceRoom();
// Rank 1 has no room for what rank 0 has: all say what they are told.
int UnseenRoom();
