// SPDX-License-Identifier: Apache-2.0
// Files that grow under several ranks, and never shrink.
#include "runtime/state/state_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

namespace hvd::rt {
namespace {

TEST_CASE("several ranks grow a file at once, and all see it all") {
  const Descriptor fd(memfd_create("hvd-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  constexpr int kRanks = 4, kSteps = 50;
  std::vector<std::unique_ptr<StateFile>> files;
  files.reserve(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    files.push_back(*StateFile::Take(Descriptor(dup(fd.get()))));
  }
  std::vector<std::thread> threads;
  threads.reserve(kRanks);
  std::atomic<int> fine{0};
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      for (uint64_t step = 1; step <= kSteps; ++step) {
        const uint64_t bytes = (step * kRanks + static_cast<uint64_t>(rank)) << 16;
        if (!files[static_cast<size_t>(rank)]->Grow(bytes).ok()) return;
        *files[static_cast<size_t>(rank)]->at(bytes - 1 - static_cast<uint64_t>(rank)) =
            std::byte{1};
      }
      ++fine;
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(fine == kRanks);
  const auto bytes = files[0]->MapFirst(UINT64_MAX / 2);
  REQUIRE(bytes.ok());
  CHECK(*bytes >= uint64_t{kSteps * kRanks + kRanks - 1} << 16);
  for (uint64_t step = 1; step <= kSteps; ++step) {
    for (uint64_t rank = 0; rank < kRanks; ++rank) {
      CHECK(*files[0]->at(((step * kRanks + rank) << 16) - 1 - rank) == std::byte{1});
    }
  }
}

TEST_CASE("a file that could be shrunk is refused, and four are wanted") {
  CHECK(absl::IsFailedPrecondition(
      StateFile::Take(Descriptor(memfd_create("hvd-test", MFD_CLOEXEC | MFD_ALLOW_SEALING)))
          .status()));
  CHECK(!StateFiles::Take({}).ok());
}

TEST_CASE("memory that a limit forbids is an error that names the limit") {
  auto file = *StateFile::MakeOwn();
  REQUIRE(file->Grow(1 << 20).ok());
  struct rlimit before {};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const struct rlimit small = {8 << 20, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const absl::Status grown = file->Grow(64 << 20);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  REQUIRE(absl::IsResourceExhausted(grown));
  CHECK(std::string(grown.message()).find("ulimit -f") != std::string::npos);
  CHECK(file->Grow(2 << 20).ok());
  REQUIRE(file->Populate(0, 2 << 20).ok());
  *file->at((2 << 20) - 1) = std::byte{3};
}

}  // namespace
}  // namespace hvd::rt
