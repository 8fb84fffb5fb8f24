// SPDX-License-Identifier: Apache-2.0
// Arenas by link B: each rank's file goes to all ranks of its host, and hvdd keeps none.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/daemon/process/link_b_fixture.h"

namespace hvd::daemon {
namespace {

using Kind = v1::Event;

Descriptor MakeArena(uint64_t bytes, int seals) {
  Descriptor file(memfd_create("arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(ftruncate(file.get(), static_cast<off_t>(bytes)) == 0);
  REQUIRE(fcntl(file.get(), F_ADD_SEALS, seals) == 0);
  return file;
}

size_t DescriptorsOf(int pid) {
  size_t count = 0;
  DIR* directory = opendir(("/proc/" + std::to_string(pid) + "/fd").c_str());
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

bool SameFile(int a, int b) {
  struct stat first {
  }, second{};
  return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_ino == second.st_ino &&
         first.st_dev == second.st_dev;
}

constexpr uint64_t kArena = 1 << 20;

// Ranks that have claimed and joined epoch 1.
std::vector<Worker> Joined(Job* job, int ranks) {
  std::vector<Worker> workers;
  for (int rank = 0; rank < ranks; ++rank) {
    workers.push_back(job->ComeBack());
    workers[rank].Claim(job->links[rank].token);
    REQUIRE(workers[rank].Receive().has_welcome());
    workers[rank].Join();
    REQUIRE(workers[rank].Receive().has_epoch_start());
    workers[rank].fds.clear();
  }
  return workers;
}

TEST_CASE("arenas go from each rank of a host to all of it, and hvdd keeps none") {
  Job job(3);
  std::vector<Worker> workers = Joined(&job, 3);
  const size_t before = DescriptorsOf(job.hvdd.pid());
  const Descriptor first = MakeArena(kArena, F_SEAL_SHRINK),
                   last = MakeArena(2 * kArena, F_SEAL_SHRINK);
  workers[0].AddressWithArena(kArena, {first.get()});
  workers[1].AddressWithArena(0, {});
  workers[2].AddressWithArena(2 * kArena, {last.get()});
  REQUIRE(job.hvdd.Await(Kind::kHostAddresses).has_value());
  v1::Command table;
  table.mutable_epoch_table()->set_epoch(1);
  job.hvdd.Send(table);
  for (Worker& worker : workers) {
    const v1::ToWorker message = worker.Receive();
    REQUIRE(message.table().arena_bytes_size() == 3);
    CHECK(message.table().arena_bytes(0) == kArena);
    CHECK(message.table().arena_bytes(1) == 0);
    CHECK(message.table().arena_bytes(2) == 2 * kArena);
    REQUIRE(worker.fds.size() == 2);
    CHECK(SameFile(worker.fds[0].get(), first.get()));
    CHECK(SameFile(worker.fds[1].get(), last.get()));
  }
  CHECK(Eventually(2, [&] { return DescriptorsOf(job.hvdd.pid()) == before; }));
}

// A buggy or hostile worker may send these instead of its arena: it alone is refused, by words or
// by the end of its link, and hvdd keeps no descriptor of it.
TEST_CASE("arenas that are refused") {
  const Descriptor good = MakeArena(kArena, F_SEAL_SHRINK), open = MakeArena(kArena, 0);
  const Descriptor small = MakeArena(4096, F_SEAL_SHRINK),
                   null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  struct Case {
    const char* what;
    uint64_t bytes;
    std::vector<int> files;
    const char* text;  // empty: the link just ends
  };
  const std::vector<Case> cases = {
      {"none", kArena, {}, "sends 0 descriptors"},
      {"not announced", 0, {good.get()}, "says 0 bytes of arena and sends 1"},
      {"two", kArena, {good.get(), good.get()}, ""},
      {"a flood", kArena, std::vector<int>(kMaxMailedFds, good.get()), ""},
      {"not sealed", kArena, {open.get()}, "sealed against shrinking"},
      {"no memfd", kArena, {null.get()}, "sealed against shrinking"},
      {"too small", kArena, {small.get()}, "holds 4096 bytes, not the 1048576"},
  };
  Job job(1);
  uint64_t epoch = 1;
  for (const Case& each : cases) {
    CAPTURE(each.what);
    if (epoch > 1) job.ProposeEpoch(epoch);
    ++epoch;
    const size_t before = DescriptorsOf(job.hvdd.pid());
    {
      Worker worker = job.ComeBack();
      REQUIRE(Eventually(2, [&] {
        worker = job.ComeBack();
        worker.Claim(job.links[0].token);
        return worker.Receive().has_welcome();
      }));
      worker.Join();
      const v1::ToWorker start = worker.Receive();
      REQUIRE(start.has_epoch_start());
      v1::ToDaemon message;
      message.mutable_address()->set_epoch(start.epoch_start().epoch());
      message.mutable_address()->set_arena_bytes(each.bytes);
      worker.SendWith(message, each.files);
      const v1::ToWorker answer = worker.Receive();
      if (*each.text != '\0') {
        CHECK(answer.refused().message().find(each.text) != std::string::npos);
      } else {
        CHECK(answer.kind_case() == v1::ToWorker::KIND_NOT_SET);
      }
    }
    CHECK(Eventually(2, [&] { return DescriptorsOf(job.hvdd.pid()) <= before; }));
  }
}

// More descriptors under way than hvdd may have: the rest follows when ranks have taken theirs.
TEST_CASE("arenas of many ranks wait for one another's reading") {
  if (geteuid() != 0) return;
  HvddOptions options;
  options.few_rights = true;
  options.containment = "subreaper";
  constexpr int kRanks = 12;
  Job job(kRanks, options);
  std::vector<Worker> workers = Joined(&job, kRanks);
  const Descriptor arena = MakeArena(kArena, F_SEAL_SHRINK);
  for (Worker& worker : workers) worker.AddressWithArena(kArena, {arena.get()});
  REQUIRE(job.hvdd.Await(Kind::kHostAddresses).has_value());
  // It can open some more of its own: UBSan looks at memory through a pipe.
  const rlim_t open_now = DescriptorsOf(job.hvdd.pid());
  const rlimit few{open_now + 8, open_now + 8};
  REQUIRE(few.rlim_cur < kRanks * kRanks);
  REQUIRE(prlimit(job.hvdd.pid(), RLIMIT_NOFILE, &few, nullptr) == 0);
  v1::Command table;
  table.mutable_epoch_table()->set_epoch(1);
  job.hvdd.Send(table);
  for (Worker& worker : workers) {
    CHECK(worker.Receive().table().arena_bytes_size() == kRanks);
    CHECK(worker.fds.size() == kRanks);
  }
  CHECK(job.hvdd.Count(Kind::kRankBroke) == 0);
}

TEST_CASE("an arena that comes out of turn is not kept") {
  Job job(1);
  const Descriptor arena = MakeArena(kArena, F_SEAL_SHRINK);
  Worker worker = job.ComeBack();
  worker.Claim(job.links[0].token);
  REQUIRE(worker.Receive().has_welcome());
  const size_t before = DescriptorsOf(job.hvdd.pid());
  for (int i = 0; i < 20; ++i) {
    worker.AddressWithArena(kArena, {arena.get()});  // before any join
    CHECK(worker.Receive().refused().message().find("out of turn") != std::string::npos);
  }
  CHECK(Eventually(2, [&] { return DescriptorsOf(job.hvdd.pid()) == before; }));
}

}  // namespace
}  // namespace hvd::daemon
