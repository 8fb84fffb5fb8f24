// Link B against a real hvdd: the ranks are threads of this test that come by the way back and by
// the door of workers that only sleep.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstring>

#include "daemon/descriptor_mail.h"
#include "daemon/link_b/frames.h"
#include "daemon/unique_fd.h"
#include "hvd/v1/link_b.pb.h"
#include "proto/hello.h"
#include "proto/host_page.h"
#include "tests/daemon/hvdd_fixture.h"

namespace hvd {
namespace {

using Kind = v1::Event;

// A worker's side of link B.
class Worker {
 public:
  explicit Worker(UniqueFd socket) : socket_(std::move(socket)) {}

  bool connected() const { return socket_.valid(); }
  void Send(const v1::ToDaemon& message) { SendBytes(Frame(message.SerializeAsString())); }
  void SendBytes(const std::string& bytes) {
    [[maybe_unused]] const ssize_t n =
        send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // The next message; KIND_NOT_SET: none within 5 s, or the link has ended.
  v1::ToWorker Receive() {
    v1::ToWorker message;
    std::string bytes;
    pollfd ready{socket_.get(), POLLIN, 0};
    while (!cutter_.Next(&bytes)) {
      char buffer[4096];
      if (poll(&ready, 1, 5000) != 1) return message;
      const ssize_t n = ReceiveMail(socket_.get(), buffer, sizeof(buffer), &fds);
      if (n <= 0) return message;
      cutter_.Take({buffer, static_cast<size_t>(n)});
    }
    message.ParseFromString(bytes);
    return message;
  }
  void Claim(const std::string& token, uint32_t protocol = kLinkBProtocol) {
    v1::ToDaemon message;
    message.mutable_claim()->set_token(token);
    message.mutable_claim()->set_protocol(protocol);
    message.mutable_claim()->set_version("test");
    Send(message);
  }
  void Join(uint64_t after, uint64_t bytes) {
    v1::ToDaemon message;
    message.mutable_join()->set_after_epoch(after);
    message.mutable_join()->set_memory_bytes(bytes);
    Send(message);
  }
  void Address(uint64_t epoch, const std::string& address) {
    v1::ToDaemon message;
    message.mutable_address()->set_epoch(epoch);
    message.mutable_address()->set_address(address);
    Send(message);
  }
  // With the descriptors of `files`, whatever they are.
  void AddressWithArena(uint64_t arena_bytes, const std::vector<int>& files) {
    v1::ToDaemon message;
    message.mutable_address()->set_epoch(1);
    message.mutable_address()->set_arena_bytes(arena_bytes);
    SendWith(message, files);
  }
  void SendWith(const v1::ToDaemon& message, const std::vector<int>& files) {
    const std::string frame = Frame(message.SerializeAsString());
    SendMail(socket_.get(), {frame.data(), frame.size()}, files, 0);
  }
  void Ready(uint64_t epoch) {
    v1::ToDaemon message;
    message.mutable_ready()->set_epoch(epoch);
    Send(message);
  }
  void Leave(uint64_t epoch) {
    v1::ToDaemon message;
    message.mutable_leave()->set_epoch(epoch);
    Send(message);
  }
  HostPage* Map() {
    void* page = mmap(nullptr, kHostPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0].get(), 0);
    return page == MAP_FAILED ? nullptr : static_cast<HostPage*>(page);
  }

  std::vector<UniqueFd> fds;  // that have come

 private:
  UniqueFd socket_;
  FrameCutter cutter_;
};

constexpr uint64_t kMemory = 2 * kHostPageBytes;

// A job whose workers print their HVD_LINK and sleep; this test speaks for them.
class Job {
 public:
  explicit Job(int ranks, HvddOptions options = {}, int hosts = 1) : hvdd(options) {
    v1::Launch launch = hvdd.MakeLaunch(ranks, {"sh", "-c", "echo $HVD_LINK; exec sleep 1000"});
    for (int i = 1; i < hosts; ++i) *launch.add_hosts() = launch.hosts(0);
    hvdd.Launch(launch);
    for (int rank = 0; rank < ranks; ++rank) {
      LinkName link;
      Eventually(5, [&] {
        const std::string text = hvdd.Output(rank);
        return !text.empty() && ParseLinkName(text.substr(0, text.size() - 1), &link);
      });
      links.push_back(link);
    }
    pids.resize(ranks);
    for (int i = 1; i <= ranks; ++i) {
      const v1::RankStarted started = hvdd.Await(Kind::kRankStarted, i)->rank_started();
      pids[started.rank()] = static_cast<int>(started.pid());
    }
  }

  // Through /proc/PID/fd of the shim, as seen from here.
  Worker ComeBack() {
    std::string path = links[0].path;
    path = "/proc/" + std::to_string(hvdd.shim_pid()) + path.substr(path.find("/fd/"));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, path.data(), path.size());
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
      socket.Reset();
    }
    return Worker(std::move(socket));
  }

  // Through the door of a sleeping worker, which is taken out of it.
  Worker Enter(int rank) {
    const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pids[rank], 0)));
    const UniqueFd door(static_cast<int>(syscall(SYS_pidfd_getfd, pidfd.get(), links[rank].fd, 0)));
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return Worker(UniqueFd());
    const UniqueFd far(ends[1]);
    SendMail(door.get(), {links[rank].token.data(), links[rank].token.size()}, {ends[1]}, 0);
    return Worker(UniqueFd(ends[0]));
  }

  // Ranks through to the running epoch.
  void Run(std::vector<Worker>* workers) {
    for (size_t rank = 0; rank < workers->size(); ++rank) {
      (*workers)[rank].Claim(links[rank].token);
      REQUIRE((*workers)[rank].Receive().has_welcome());
      (*workers)[rank].Join(0, kMemory);
    }
    for (Worker& worker : *workers) REQUIRE(worker.Receive().has_epoch_start());
    for (Worker& worker : *workers) worker.Address(1, "address");
    REQUIRE(hvdd.Await(Kind::kHostAddresses).has_value());
    v1::Command table;
    table.mutable_epoch_table()->set_epoch(1);
    hvdd.Send(table);
    for (Worker& worker : *workers) REQUIRE(worker.Receive().has_table());
    for (Worker& worker : *workers) worker.Ready(1);
    REQUIRE(hvdd.Await(Kind::kHostReady).has_value());
    v1::Command go;
    go.mutable_epoch_go()->set_epoch(1);
    hvdd.Send(go);
    for (Worker& worker : *workers) REQUIRE(worker.Receive().has_go());
  }

  Hvdd hvdd;
  std::vector<LinkName> links;
  std::vector<int> pids;
};

TEST_CASE("an epoch of two ranks, one by the door and one by the way back") {
  Job job(2, {}, 2);
  std::vector<Worker> workers;
  workers.push_back(job.Enter(0));
  workers.push_back(job.ComeBack());
  REQUIRE(workers[1].connected());

  workers[0].Claim(job.links[0].token);
  const v1::ToWorker welcome = workers[0].Receive();
  REQUIRE(welcome.has_welcome());
  CHECK(welcome.welcome().rank() == 0);
  CHECK(welcome.welcome().hosts_size() == 2);
  CHECK(welcome.welcome().hosts(0).ranks() == 2);
  CHECK(welcome.welcome().job() == job.hvdd.job());
  workers[1].Claim(job.links[1].token);
  CHECK(workers[1].Receive().welcome().rank() == 1);

  std::vector<HostPage*> pages;
  std::string token;
  for (Worker& worker : workers) {
    worker.Join(0, kMemory);
    const v1::ToWorker start = worker.Receive();
    REQUIRE(start.has_epoch_start());
    CHECK(start.epoch_start().epoch() == 1);
    CHECK(start.epoch_start().token().size() == 8);
    CHECK(worker.fds.size() == 3);  // memory, and a bell a rank as there are two hosts
    pages.push_back(worker.Map());
    REQUIRE(pages.back() != nullptr);
  }
  CHECK(pages[0]->magic == kHostPageMagic);
  CHECK(pages[0]->local_size == 2);
  CHECK(pages[0]->bytes == kMemory);
  CHECK(pages[0]->epoch == 1);
  pages[0]->bell.word = 42;
  CHECK(pages[1]->bell.word == 42);
  CHECK(ftruncate(workers[0].fds[0].get(), 0) != 0);  // sealed

  workers[1].Address(1, "one");
  workers[0].Address(1, "zero");
  const auto addresses = job.hvdd.Await(Kind::kHostAddresses);
  REQUIRE(addresses.has_value());
  REQUIRE(addresses->host_addresses().addresses_size() == 2);
  CHECK(addresses->host_addresses().addresses(0).address() == "zero");
  CHECK(addresses->host_addresses().addresses(1).address() == "one");

  v1::Command table;
  table.mutable_epoch_table()->set_epoch(1);
  for (int rank = 3; rank >= 0; --rank) {
    v1::RankAddress& entry = *table.mutable_epoch_table()->add_addresses();
    entry.set_rank(rank);
    entry.set_address("address " + std::to_string(rank));
  }
  job.hvdd.Send(table);
  for (Worker& worker : workers) {
    const v1::ToWorker message = worker.Receive();
    REQUIRE(message.table().addresses_size() == 4);
    CHECK(message.table().addresses(3) == "address 3");
    worker.Ready(1);
  }
  CHECK(job.hvdd.Await(Kind::kHostReady).has_value());
  v1::Command go;
  go.mutable_epoch_go()->set_epoch(1);
  job.hvdd.Send(go);
  for (Worker& worker : workers) CHECK(worker.Receive().has_go());
  for (Worker& worker : workers) worker.Leave(1);
  CHECK(job.hvdd.Await(Kind::kRankLeft, 2).has_value());
  CHECK(job.hvdd.Count(Kind::kRankBroke) == 0);
  for (HostPage* page : pages) munmap(page, kHostPageBytes);
}

UniqueFd MakeArena(uint64_t bytes, int seals) {
  UniqueFd file(memfd_create("arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
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
    workers[rank].Join(0, kMemory);
    REQUIRE(workers[rank].Receive().has_epoch_start());
    workers[rank].fds.clear();
  }
  return workers;
}

TEST_CASE("arenas go from each rank of a host to all of it, and hvdd keeps none") {
  Job job(3);
  std::vector<Worker> workers = Joined(&job, 3);
  const size_t before = DescriptorsOf(job.hvdd.pid());
  const UniqueFd first = MakeArena(kArena, F_SEAL_SHRINK),
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

// What a buggy or hostile worker may send instead of its arena: it alone is refused, by words or
// by the end of its link, and hvdd keeps no descriptor of it.
TEST_CASE("arenas that are refused") {
  const UniqueFd good = MakeArena(kArena, F_SEAL_SHRINK), open = MakeArena(kArena, 0);
  const UniqueFd small = MakeArena(4096, F_SEAL_SHRINK),
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
  for (const Case& each : cases) {
    CAPTURE(each.what);
    const size_t before = DescriptorsOf(job.hvdd.pid());
    {
      Worker worker = job.ComeBack();
      REQUIRE(Eventually(2, [&] {
        worker = job.ComeBack();
        worker.Claim(job.links[0].token);
        return worker.Receive().has_welcome();
      }));
      worker.Join(0, kMemory);
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
  const UniqueFd arena = MakeArena(kArena, F_SEAL_SHRINK);
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
  const UniqueFd arena = MakeArena(kArena, F_SEAL_SHRINK);
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

TEST_CASE("claims that are refused, each with its reason") {
  Job job(2);
  Worker wrong = job.ComeBack();
  wrong.Claim(std::string(32, '0'));
  CHECK(wrong.Receive().refused().message().find("wrong token") != std::string::npos);
  Worker old = job.ComeBack();
  old.Claim(job.links[0].token, kLinkBProtocol + 1);
  CHECK(old.Receive().refused().message().find("protocol") != std::string::npos);
  Worker first = job.ComeBack();
  first.Claim(job.links[0].token);
  CHECK(first.Receive().has_welcome());
  Worker second = job.ComeBack();
  second.Claim(job.links[0].token);
  CHECK(second.Receive().refused().message().find("already taken by process") != std::string::npos);
}

TEST_CASE("after the first has closed its link the rank may be claimed again") {
  Job job(1);
  {
    Worker first = job.ComeBack();
    first.Claim(job.links[0].token);
    CHECK(first.Receive().has_welcome());
  }
  CHECK(Eventually(2, [&] {
    Worker next = job.ComeBack();
    next.Claim(job.links[0].token);
    return next.Receive().has_welcome();
  }));
}

TEST_CASE("garbage closes that connection only") {
  Job job(1);
  Worker good = job.ComeBack();
  good.Claim(job.links[0].token);
  REQUIRE(good.Receive().has_welcome());
  Worker bad = job.ComeBack();
  bad.SendBytes("GET / HTTP/1.1\r\n\r\n");
  CHECK(bad.Receive().kind_case() == v1::ToWorker::KIND_NOT_SET);
  Worker odd = job.ComeBack();
  odd.Join(0, kMemory);  // before any claim
  CHECK(odd.Receive().kind_case() == v1::ToWorker::KIND_NOT_SET);
  good.Join(0, kMemory);
  CHECK(good.Receive().has_epoch_start());
}

TEST_CASE("different sizes of memory end the epoch with both ranks' names") {
  Job job(2);
  std::vector<Worker> workers;
  for (int rank : {0, 1}) {
    workers.push_back(job.ComeBack());
    workers[rank].Claim(job.links[rank].token);
    REQUIRE(workers[rank].Receive().has_welcome());
  }
  workers[0].Join(0, kMemory);
  REQUIRE(workers[0].Receive().has_epoch_start());
  workers[1].Join(0, 2 * kMemory);
  for (Worker& worker : workers) {
    CHECK(worker.Receive().refused().message().find("rank 1 asks for") != std::string::npos);
  }
}

TEST_CASE("a link that breaks inside an epoch aborts it and is told") {
  Job job(2);
  std::vector<Worker> workers;
  workers.push_back(job.ComeBack());
  workers.push_back(job.ComeBack());
  job.Run(&workers);
  HostPage* page = workers[0].Map();
  REQUIRE(page != nullptr);
  workers.pop_back();  // rank 1's link
  REQUIRE(Eventually(2, [&] { return page->aborted.load() != 0; }));
  CHECK(std::string(page->abort_text).find("rank 1 on host1 closed its link") == 0);
  const auto broke = job.hvdd.Await(Kind::kRankBroke);
  REQUIRE(broke.has_value());
  CHECK(broke->rank_broke().rank() == 1);
  munmap(page, kHostPageBytes);
}

TEST_CASE("a rank that dies before it joins frees those who wait") {
  Job job(2);
  Worker worker = job.ComeBack();
  worker.Claim(job.links[0].token);
  REQUIRE(worker.Receive().has_welcome());
  worker.Join(0, kMemory);
  REQUIRE(worker.Receive().has_epoch_start());
  HostPage* page = worker.Map();
  REQUIRE(page != nullptr);
  kill(job.pids[1], SIGKILL);
  const std::string cause = worker.Receive().refused().message();
  CHECK(cause == "rank 1 on host1 was killed by signal 9 (Killed) before hvd_init");
  CHECK(page->abort_text == cause);
  const auto exited = job.hvdd.AwaitExit(1);
  REQUIRE(exited.has_value());
  CHECK(exited->signal() == SIGKILL);
  CHECK(!exited->after_abort());
  munmap(page, kHostPageBytes);
}

TEST_CASE("the driver's abort and stop reach the page with their cause") {
  Job job(1);
  std::vector<Worker> workers;
  workers.push_back(job.ComeBack());
  job.Run(&workers);
  HostPage* page = workers[0].Map();
  REQUIRE(page != nullptr);
  snprintf(page->activity[0].last, sizeof(page->activity[0].last), "allreduce 'grad.3'");
  page->activity[0].calls = 12;
  page->activity[0].pending = 1;
  page->activity[0].state = RankState::kWaiting;
  v1::Command abort;
  abort.mutable_epoch_abort()->set_cause("rank 7 on host9 exited with code 3");
  job.hvdd.Send(abort);
  REQUIRE(Eventually(2, [&] { return page->aborted.load() != 0; }));
  CHECK(std::string(page->abort_text) == "rank 7 on host9 exited with code 3");
  job.hvdd.Stop();
  const auto exited = job.hvdd.AwaitExit(0);
  REQUIRE(exited.has_value());
  CHECK(exited->after_abort());
  CHECK(exited->joined());
  CHECK(exited->activity() == "waiting in allreduce 'grad.3'; 12 collectives done");
  munmap(page, kHostPageBytes);
}

TEST_CASE("workers of an ordinary user reach the way back") {
  HvddOptions options;
  options.ordinary_user = geteuid() == 0;
  for (const std::string& level : WorkingLevels(options.ordinary_user)) {
    CAPTURE(level);
    options.containment = level;
    Hvdd hvdd(options);
    hvdd.Launch(1, {"python3", "-c",
                    "import os,socket\n"
                    "s=socket.socket(socket.AF_UNIX)\n"
                    "s.connect(os.environ['HVD_LINK'].split(':',3)[3])\n"
                    "print('reached')"});
    CHECK(hvdd.AwaitOutput(0) == "reached\n");
    CHECK(hvdd.AwaitOutput(0, true) == "");
  }
}

}  // namespace
}  // namespace hvd
