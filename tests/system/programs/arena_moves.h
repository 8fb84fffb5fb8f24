// SPDX-License-Identifier: Apache-2.0
#pragma once

// Broadcasts, allgathers, reduce-scatters and alltoalls of tensors in memory of hvd_alloc, many at
// once, submitted by each rank in another order; and one whose result does not fit on one rank.
// Ends the program when something is wrong.
void CheckMoves();
