// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cuda/device_memory.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>

namespace hvd::rt {
namespace {

// The signal that ends a process which reads there; 0: none.
int ReadBy(uint64_t address) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    volatile char byte = *reinterpret_cast<volatile char*>(address);
    (void)byte;
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST_CASE("the host may not touch what the device has; its bytes lie elsewhere") {
  DeviceMemory memory;
  const uint64_t address = memory.Allocate(100, 0);
  REQUIRE(address != 0);
  CHECK(ReadBy(address) == SIGSEGV);
  CHECK(memory.KindOf(address + 99) == MemoryKind::kDevice);
  CHECK(memory.KindOf(address + 100) == MemoryKind::kPageable);
  REQUIRE(memory.Bytes(address, 100) != nullptr);
  CHECK(memory.Bytes(address, 100)[50] != 0);
  CHECK(memory.Bytes(address + 1, 100) == nullptr);
  CHECK(memory.Bytes(address + 40, 60) == memory.Bytes(address, 1) + 40);
}

TEST_CASE("what is given back is nobody's, and never given again") {
  DeviceMemory memory;
  const uint64_t address = memory.Allocate(64, 1);
  CHECK(memory.DeviceOf(address + 63) == 1);
  CHECK_FALSE(memory.Free(address + 1));
  CHECK(memory.Free(address));
  CHECK_FALSE(memory.Free(address));
  CHECK(memory.Bytes(address, 1) == nullptr);
  for (int i = 0; i < 50; ++i) CHECK(memory.Allocate(64, 1) != address);
}

TEST_CASE("pinned memory is the host's, and told apart") {
  DeviceMemory memory;
  char mine[32];
  memory.Pin(mine, sizeof(mine));
  CHECK(memory.KindOf(reinterpret_cast<uint64_t>(mine + 31)) == MemoryKind::kPinned);
  CHECK(memory.Bytes(reinterpret_cast<uint64_t>(mine), 1) == nullptr);
  CHECK_FALSE(memory.Unpin(mine, true));  // it was registered, not allocated
  CHECK(memory.Unpin(mine, false));
  CHECK(memory.KindOf(reinterpret_cast<uint64_t>(mine)) == MemoryKind::kPageable);
}

}  // namespace
}  // namespace hvd::rt
