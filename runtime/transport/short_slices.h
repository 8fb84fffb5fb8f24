// SPDX-License-Identifier: Apache-2.0
// How soon a woken thread runs beside one that computes.
#pragma once

namespace hvd::rt {

// Asks the scheduler for short slices for the calling thread: it runs seldom and shortly, and what
// it does when it is woken decides when peers go on, so it should not wait for a computing
// neighbour's slice to end (3 ms and more). Its share of the core stays the same. Linux 6.12 and
// newer; on others nothing happens. False if it was refused.
bool AskForShortSlices();

}  // namespace hvd::rt
