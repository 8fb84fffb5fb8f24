// SPDX-License-Identifier: Apache-2.0
// What the stand-in for NCCL asks of the stand-in for the driver: both are libraries of a process.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct hvd_stand_in_range {
  uint64_t address;
  uint64_t bytes;
  bool writes;
};
// Runs `work(places, data)` on the stream: where the bytes of each range of device memory lie.
// 0: it will run.
int hvd_stand_in_enqueue(void* stream, const hvd_stand_in_range* ranges, size_t count,
                         const char* what, void (*work)(char* const* places, void* data),
                         void* data);
// Counts a call; true: HVD_STAND_IN wants it to fail.
bool hvd_stand_in_fails(const char* call);
void hvd_stand_in_find(const char* finding);
bool hvd_stand_in_aborts_together();

uint64_t hvd_stand_in_calls(const char* call);
uint64_t hvd_stand_in_findings();
// Writes the `index`th finding to `text`; as many bytes as fit.
void hvd_stand_in_finding(uint64_t index, char* text, size_t bytes);

}  // extern "C"
