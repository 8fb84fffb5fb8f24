// SPDX-License-Identifier: Apache-2.0
// Link B against a real hvdd: the ranks are threads of a test that come by the way back and by
// the door of workers that only sleep.
#pragma once

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/descriptor_mail.h"
#include "daemon/connections/frames.h"
#include "hvd/v1/link_b.pb.h"
#include "proto/hello.h"
#include "proto/page/host_page.h"
#include "tests/daemon/process/hvdd_fixture.h"
#include "tests/support/patience.h"

namespace hvd::daemon {

// As much as any of these tests needs, and what a rank asks for.
inline constexpr uint64_t kPageBytes = HostPageBytes(kMaxLocalRanks);
inline constexpr uint64_t kMemory = 2 * kPageBytes;

// A worker's side of link B.
class Worker {
 public:
  explicit Worker(Descriptor socket) : socket_(std::move(socket)) {}

  bool connected() const { return socket_.valid(); }
  void Send(const v1::ToDaemon& message) { SendBytes(Frame(message.SerializeAsString())); }
  void SendBytes(const std::string& bytes) {
    [[maybe_unused]] const ssize_t n =
        send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // Whether hvdd leaves this link within 10 s; nothing is read meanwhile.
  bool AwaitLeft() const {
    pollfd left{socket_.get(), 0, 0};
    return poll(&left, 1, PatientMs(10000)) == 1 && (left.revents & POLLHUP) != 0;
  }
  // The next message; KIND_NOT_SET: none within 5 s, or the link has ended.
  v1::ToWorker Receive() {
    v1::ToWorker message;
    message.ParseFromString(ReceiveBytes());
    return message;
  }
  // The same, as it came; empty: none.
  std::string ReceiveBytes() {
    std::string bytes;
    pollfd ready{socket_.get(), POLLIN, 0};
    while (!cutter_.Next(&bytes)) {
      char buffer[4096];
      if (poll(&ready, 1, PatientMs(5000)) != 1) return "";
      const ssize_t n = ReceiveMail(socket_.get(), buffer, sizeof(buffer), &fds);
      if (n <= 0) return "";
      cutter_.Take({buffer, static_cast<size_t>(n)});
    }
    return bytes;
  }
  void ClaimStore(const std::string& token, uint32_t protocol = kLinkBProtocol) {
    v1::ToDaemon message;
    message.mutable_store_claim()->set_token(token);
    message.mutable_store_claim()->set_protocol(protocol);
    message.mutable_store_claim()->set_version("test");
    Send(message);
  }
  void Claim(const std::string& token, uint32_t protocol = kLinkBProtocol) {
    v1::ToDaemon message;
    message.mutable_claim()->set_token(token);
    message.mutable_claim()->set_protocol(protocol);
    message.mutable_claim()->set_version("test");
    Send(message);
  }
  void Join() {
    v1::ToDaemon message;
    message.mutable_join();
    Send(message);
  }
  void Address(uint64_t epoch, const std::string& address, uint64_t bytes = kMemory) {
    v1::ToDaemon message;
    message.mutable_address()->set_memory_bytes(bytes);
    message.mutable_address()->set_epoch(epoch);
    message.mutable_address()->set_address(address);
    Send(message);
  }
  // With the descriptors of `files`, whatever they are.
  void AddressWithArena(uint64_t arena_bytes, const std::vector<int>& files) {
    v1::ToDaemon message;
    message.mutable_address()->set_epoch(1);
    message.mutable_address()->set_memory_bytes(kMemory);
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
    void* page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0].get(), 0);
    return page == MAP_FAILED ? nullptr : static_cast<HostPage*>(page);
  }

  std::vector<Descriptor> fds;  // that have come

 private:
  Descriptor socket_;
  FrameCutter cutter_;
};

// Through /proc/PID/fd of the shim, as seen from here.
inline Worker ConnectBack(const Hvdd& hvdd, const LinkName& link) {
  const std::string path =
      "/proc/" + std::to_string(hvdd.shim_pid()) + link.path.substr(link.path.find("/fd/"));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.data(), path.size());
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    socket.Reset();
  }
  return Worker(std::move(socket));
}

// A job whose workers print their HVD_LINK and sleep; this test speaks for them.
class Job {
 public:
  explicit Job(int ranks, HvddOptions options = {}, int hosts = 1) : hvdd(options) {
    HvddLaunch launch = hvdd.MakeLaunch(ranks, {"sh", "-c", "echo $HVD_LINK; exec sleep 1000"});
    for (int i = 1; i < hosts; ++i) {
      const v1::EpochHost like = launch.propose.hosts(0);
      *launch.propose.add_hosts() = like;
      launch.propose.mutable_hosts(i)->set_host(i);
    }
    first = launch.propose;
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
      const v1::RankStarted started = hvdd.Await(v1::Event::kRankStarted, i)->rank_started();
      pids[started.member() - 1] = static_cast<int>(started.pid());
    }
  }

  Worker ComeBack() { return ConnectBack(hvdd, links[0]); }

  // Through the door of a sleeping worker, which is taken out of it.
  Worker Enter(int rank) {
    const Descriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, pids[rank], 0)));
    const Descriptor door(
        static_cast<int>(syscall(SYS_pidfd_getfd, pidfd.get(), links[rank].fd, 0)));
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return Worker(Descriptor());
    const Descriptor far(ends[1]);
    SendMail(door.get(), {links[rank].token.data(), links[rank].token.size()}, {ends[1]}, 0);
    return Worker(Descriptor(ends[0]));
  }

  // Ranks through to the running epoch.
  void Run(std::vector<Worker>* workers) {
    for (size_t rank = 0; rank < workers->size(); ++rank) {
      (*workers)[rank].Claim(links[rank].token);
      REQUIRE((*workers)[rank].Receive().has_welcome());
      (*workers)[rank].Join();
    }
    for (Worker& worker : *workers) REQUIRE(worker.Receive().has_epoch_start());
    for (Worker& worker : *workers) worker.Address(1, "address");
    REQUIRE(hvdd.Await(v1::Event::kHostAddresses).has_value());
    v1::Command table;
    table.mutable_epoch_table()->set_epoch(1);
    hvdd.Send(table);
    for (Worker& worker : *workers) REQUIRE(worker.Receive().has_table());
    for (Worker& worker : *workers) worker.Ready(1);
    REQUIRE(hvdd.Await(v1::Event::kHostReady).has_value());
    v1::Command go;
    go.mutable_epoch_go()->set_epoch(1);
    hvdd.Send(go);
    for (Worker& worker : *workers) REQUIRE(worker.Receive().has_go());
  }

  // All ranks, by the way back.
  std::vector<Worker> RunAll() {
    std::vector<Worker> workers;
    while (workers.size() < links.size()) workers.push_back(ComeBack());
    Run(&workers);
    return workers;
  }

  // The same members once more.
  void ProposeEpoch(uint64_t number) {
    v1::EpochPropose next = first;
    next.set_epoch(number);
    hvdd.Propose(next);
  }

  Hvdd hvdd;
  v1::EpochPropose first;  // epoch
  std::vector<LinkName> links;
  std::vector<int> pids;
};

}  // namespace hvd::daemon
