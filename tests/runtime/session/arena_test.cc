// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/session/host_arenas.h"
#include "tests/system/programs/address_space.h"

namespace hvd::rt {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

size_t PagesOf(const ArenaFile& file) {
  struct stat info {};
  return fstat(file.fd, &info) == 0 ? info.st_blocks * 512 / 4096 : SIZE_MAX;
}

ArenaFile Copy(const ArenaFile& file) { return {dup(file.fd), file.bytes}; }

size_t OpenDescriptors() {
  size_t count = 0;
  for (int fd = 0; fd < 1024; ++fd) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

TEST_CASE("an arena that nobody uses has neither pages nor a mapping") {
  Arena arena;
  const ArenaFile file = arena.Share();
  REQUIRE(file.fd >= 0);
  CHECK(file.bytes >= 64 * kMiB);
  CHECK(PagesOf(file) == 0);
  CHECK(arena.mapped_bytes() == 0);
  CHECK(arena.Share().fd == file.fd);
}

TEST_CASE("memory has its place, and other memory none") {
  Arena arena;
  int outside = 0;
  CHECK(arena.At(&outside, 4) == -1);
  auto memory = arena.Allocate(1000);
  REQUIRE(memory.ok());
  auto* bytes = static_cast<std::byte*>(*memory);
  const int64_t at = arena.At(bytes, 1000);
  REQUIRE(at >= 0);
  CHECK(arena.Find(at, 1000) == bytes);
  CHECK(arena.At(bytes + 10, 20) == at + 10);
  CHECK(arena.At(&outside, 4) == -1);
  CHECK(arena.At(nullptr, 0) == -1);
  const size_t all = arena.mapped_bytes();
  std::byte* const base = bytes - at;
  CHECK(all < 100 * kMiB);
  CHECK(arena.At(base, all) == 0);
  CHECK(arena.At(base, all + 1) == -1);
  CHECK(arena.At(base + all - 1, 2) == -1);
  CHECK(arena.At(base - 1, 2) == -1);
  CHECK(arena.At(bytes, SIZE_MAX) == -1);
}

TEST_CASE("what hvd_free must not take is refused with words") {
  Arena arena;
  int outside = 0;
  CHECK(arena.Free(nullptr).ok());
  CHECK(std::string(arena.Free(&outside).message()).find("not of hvd_alloc") != std::string::npos);
  auto memory = arena.Allocate(100);
  REQUIRE(memory.ok());
  auto* inside = static_cast<char*>(*memory) + 64;
  CHECK(std::string(arena.Free(inside).message()).find("not the one") != std::string::npos);
  CHECK(arena.Free(*memory).ok());
  CHECK(std::string(arena.Free(*memory).message()).find("freed already") != std::string::npos);
  CHECK(std::string(arena.Free(&outside).message()).find("not of hvd_alloc") != std::string::npos);
}

TEST_CASE("a full arena says how much it holds") {
  Arena arena;
  const auto memory = arena.Allocate(size_t{1} << 60);
  REQUIRE_FALSE(memory.ok());
  CHECK(absl::IsResourceExhausted(memory.status()));
  CHECK(std::string(memory.status().message()).find("arena of") != std::string::npos);
  CHECK(arena.Allocate(64).ok());
}

TEST_CASE("where limits leave no room there is no arena, and no signal") {
  for (const auto limit : {RLIMIT_FSIZE, RLIMIT_AS}) {
    const pid_t child = fork();
    if (child == 0) {
      const rlimit low{100 * kMiB, 100 * kMiB}, lower{kMiB, kMiB};
      setrlimit(limit, limit == RLIMIT_AS ? &low : &lower);
      Arena arena;
      const auto memory = arena.Allocate(64);
      const bool said = !memory.ok() && memory.status().message().find("ulimit") < 200;
      _exit(arena.Share().fd == -1 && arena.Share().bytes == 0 && said ? 0 : 1);
    }
    int status = 1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
}

TEST_CASE(
    "a piece that cannot be mapped is refused with size and limit, and smaller ones are not") {
  const pid_t child = fork();
  if (child == 0) {
    Arena arena;
    bool right = arena.Allocate(kMiB).ok();
    LimitAddressSpace(100 * kMiB);
    for (int i = 0; i < 3; ++i) {
      const auto large = arena.Allocate(200 * kMiB);
      const std::string why(large.status().message());
      right = right && absl::IsResourceExhausted(large.status()) &&
              why.find("cannot map memory for 200 MB: 200 MB of address space are needed") <
                  why.find("(ulimit -v ");
    }
    const auto small = arena.Allocate(60 * kMiB);
    right = right && small.ok() && arena.Free(*small).ok();
    LiftLimit();
    _exit(right && arena.Allocate(200 * kMiB).ok() ? 0 : 1);
  }
  int status = 1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("a rank of little address space says how much of the others' arenas it will see") {
  const pid_t child = fork();
  if (child == 0) {
    Arena mine, other, third;
    const auto own = mine.Allocate(kMiB);
    const ArenaFile files[] = {Copy(other.Share()), Copy(third.Share())};
    LimitAddressSpace(400 * kMiB);
    const auto arenas = HostArenas::Map({{}, files[0], files[1]}, 0, &mine);
    bool right = own.ok() && arenas->sees() > 90 * kMiB && arenas->sees() <= 100 * kMiB;
    right = right && arenas->Offer(*own, kMiB) >= 0;
    arenas->Agree(kMiB / 2);  // another sees less
    right = right && arenas->Offer(*own, kMiB) == -1 && arenas->Offer(*own, kMiB / 2) >= 0;
    // More than was agreed: the refusal says how much it was.
    MapRefusal why;
    right = right && arenas->Address(1, 0, 500 * kMiB, &why) == nullptr;
    right = right && why.error == ENOMEM && why.bytes == 500 * kMiB;
    right = right && arenas->Address(1, 0, 90 * kMiB, &why) != nullptr;
    _exit(right ? 0 : 1);
  }
  int status = 1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("a large piece gives its pages back and comes again as zeros") {
  Arena arena;
  auto first = arena.Allocate(4 * kMiB), second = arena.Allocate(4 * kMiB);
  REQUIRE((first.ok() && second.ok()));
  std::memset(*first, 1, 4 * kMiB);
  std::memset(*second, 2, 4 * kMiB);
  CHECK(PagesOf(arena.Share()) >= 2048);
  REQUIRE(arena.Free(*first).ok());
  CHECK(PagesOf(arena.Share()) < 2048);
  CHECK(static_cast<char*>(*second)[4 * kMiB - 1] == 2);
  auto again = arena.Allocate(4 * kMiB);
  REQUIRE(again.ok());
  CHECK(*again == *first);
  CHECK(static_cast<char*>(*again)[kMiB] == 0);
}

TEST_CASE("several threads take and give back") {
  Arena arena;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<char*> mine;
      for (int i = 0; i < 2000; ++i) {
        const auto memory = arena.Allocate(64 + i % 5000);
        if (!memory.ok()) {
          ++wrong;
          continue;
        }
        mine.push_back(static_cast<char*>(*memory));
        std::memset(mine.back(), t, 64 + i % 5000);
        if (i % 3 != 0) continue;
        wrong += mine.front()[0] != t || !arena.Free(mine.front()).ok();
        mine.erase(mine.begin());
      }
      for (char* memory : mine) wrong += memory[63] != t || !arena.Free(memory).ok();
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("ranks of a host see one another's arenas and close what they were given") {
  Arena mine, other, unused;
  const size_t before = OpenDescriptors();
  auto memory = other.Allocate(kMiB);
  REQUIRE(memory.ok());
  std::strcpy(static_cast<char*>(*memory), "from the other");
  {
    const auto arenas =
        HostArenas::Map({Copy(mine.Share()), Copy(other.Share()), Copy(unused.Share())}, 0, &mine);
    REQUIRE(arenas->sees() == UINT64_MAX);
    CHECK(arenas->mapped_bytes() == 0);
    const auto theirs = HostArenas::Map({Copy(mine.Share()), {}, {}}, 1, &other);
    const int64_t at = theirs->Offer(*memory, kMiB);
    REQUIRE(at >= 0);
    auto* here = reinterpret_cast<char*>(arenas->Address(1, at, kMiB));
    REQUIRE(here != nullptr);
    CHECK(here != *memory);
    CHECK(arenas->mapped_bytes() < 100 * kMiB);
    CHECK(std::string(here) == "from the other");
    std::strcpy(here, "and back");
    CHECK(std::string(static_cast<char*>(*memory)) == "and back");
    // Its own arena is seen where it lies, also when it is used only later.
    CHECK(arenas->Address(0, 0) == nullptr);
    const auto own = mine.Allocate(100);
    REQUIRE(own.ok());
    CHECK(arenas->Address(0, arenas->Offer(*own, 100), 100) == *own);
    // Beyond the end.
    CHECK(arenas->Address(1, -1) == nullptr);
    CHECK(arenas->Address(1, static_cast<int64_t>(other.Share().bytes), 1) == nullptr);
  }
  CHECK(OpenDescriptors() == before + 3);  // the arenas' own
}

// By the hash with which AMD's Zen processors look up a line in a first-level cache.
int LineHash(const void* address) {
  const auto bits = reinterpret_cast<uintptr_t>(address);
  const auto bit = [bits](int i) { return static_cast<int>(bits >> i & 1); };
  constexpr int kPartner[] = {27, 26, 25, 20, 21, 22, 23, 24};
  int hash = 0;
  for (int i = 0; i < 8; ++i) hash |= (bit(12 + i) ^ bit(kPartner[i])) << i;
  return hash;
}

TEST_CASE("equal offsets of two ranks' arenas never share a hash of a first-level cache") {
  constexpr int kLocalRank = 2;
  std::vector<std::unique_ptr<Arena>> ranks;
  std::vector<ArenaFile> files;
  for (int rank = 0; rank < 6; ++rank) {
    ranks.push_back(std::make_unique<Arena>());
    files.push_back(rank == kLocalRank ? ArenaFile{} : Copy(ranks.back()->Share()));
  }
  REQUIRE(ranks[kLocalRank]->Allocate(64 * kMiB).ok());  // its own is seen as far as it is used
  const auto arenas = HostArenas::Map(std::move(files), kLocalRank, ranks[kLocalRank].get());
  REQUIRE(arenas->sees() == UINT64_MAX);
  for (const int64_t at : {0LL, 4096LL, 123 * 4096LL, 5LL << 20, 48LL << 20}) {
    std::set<int> hashes;
    for (int rank = 0; rank < 6; ++rank) hashes.insert(LineHash(arenas->Address(rank, at)));
    CHECK(hashes.size() == 6);
  }
}

TEST_CASE("a rank that cannot see all arenas offers nothing") {
  Arena mine;
  auto memory = mine.Allocate(64);
  REQUIRE(memory.ok());
  const size_t before = OpenDescriptors();
  const int unsealed = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  REQUIRE(ftruncate(unsealed, 4096) == 0);
  CHECK(HostArenas::Map({{}, {unsealed, 4096}}, 0, &mine)->sees() == 0);
  const int small = memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  REQUIRE(ftruncate(small, 4096) == 0);
  fcntl(small, F_ADD_SEALS, F_SEAL_SHRINK);
  CHECK(HostArenas::Map({{}, {dup(small), 8192}}, 0, &mine)->sees() == 0);
  CHECK(HostArenas::Map({{}, {dup(small), 4096}}, 0, &mine)->sees() > 0);
  // A rank with an arena whose descriptor did not come.
  const auto missing = HostArenas::Map({{}, {-1, 4096}}, 0, &mine);
  CHECK(missing->sees() == 0);
  CHECK(missing->Offer(*memory, 64) == -1);
  // A rank without one is no loss: its own requests have no place in it.
  CHECK(HostArenas::Map({{}, {}}, 0, &mine)->Offer(*memory, 64) >= 0);
  close(small);
  CHECK(OpenDescriptors() == before);
}

TEST_CASE("a forked child has a copy of its own and cannot reach the others") {
  Arena mine, other;
  auto memory = mine.Allocate(kMiB);
  REQUIRE((memory.ok() && other.Allocate(64).ok()));
  const auto arenas = HostArenas::Map({{}, Copy(other.Share())}, 0, &mine);
  auto* text = static_cast<char*>(*memory);
  std::byte* const theirs = arenas->Address(1, 0);
  REQUIRE(theirs != nullptr);
  std::strcpy(text, "parent");
  const pid_t child = fork();
  if (child == 0) {
    mine.DetachChild();
    const bool reads = std::strcmp(text, "parent") == 0;
    std::strcpy(text, "child");
    unsigned char resident = 0;
    const bool peers_gone = mincore(theirs, 4096, &resident) != 0;
    _exit(reads && peers_gone && std::strcmp(text, "child") == 0 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(std::string(text) == "parent");
}

}  // namespace
}  // namespace hvd::rt
