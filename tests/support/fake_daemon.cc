// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_daemon.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/support/link_frames.h"

namespace hvd {
namespace {

std::string Token(int rank) {
  char token[33];
  snprintf(token, sizeof(token), "%032d", rank);
  return token;
}

}  // namespace

FakeDaemon::FakeDaemon(std::vector<HostShape> hosts)
    : topology_(std::move(hosts)),
      connections_(topology_.size(), -1),
      pages_(topology_.hosts().size()),
      memories_(topology_.hosts().size(), -1),
      event_fds_(topology_.hosts().size()) {
  std::string pattern = std::string(P_tmpdir) + "/hvd-test-XXXXXX";
  directory_ = mkdtemp(pattern.data());
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof(address.sun_path), "%s/link", directory_.c_str());
  listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(listener_, reinterpret_cast<struct sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listener_, topology_.size()) != 0) {
    abort();
  }
  thread_ = std::thread([this] { Serve(); });
}

FakeDaemon::~FakeDaemon() {
  thread_.join();
  close(listener_);
  unlink((directory_ + "/link").c_str());
  rmdir(directory_.c_str());
}

LinkName FakeDaemon::link(int rank) const { return {-1, 0, Token(rank), directory_ + "/link"}; }

const int* FakeDaemon::event_fds(int host) const {
  return event_fds_[host].empty() ? nullptr : event_fds_[host].data();
}

void FakeDaemon::Serve() {
  for (int r = 0; r < topology_.size(); ++r) {
    const int fd = accept(listener_, nullptr, nullptr);
    v1::ToDaemon claim;
    if (!ReadFrame(fd, &claim)) abort();
    const int rank = atoi(claim.claim().token().c_str());
    connections_[rank] = fd;
    v1::ToWorker welcome;
    welcome.mutable_welcome()->set_member(rank + 1);
    WriteFrame(fd, welcome);
  }
  for (uint64_t epoch = 1; ServeEpoch(epoch); ++epoch) CloseEpoch();
  CloseEpoch();
  for (const int fd : connections_) close(fd);
}

void FakeDaemon::StartEpoch(uint64_t epoch) {
  for (size_t host = 0; host < pages_.size(); ++host) {
    memories_[host] = memfd_create("hvd-test", MFD_CLOEXEC);
    if (ftruncate(memories_[host], static_cast<off_t>(kHostFileBytes)) != 0) abort();
    const int ranks = topology_.hosts()[host].ranks;
    void* address =
        mmap(nullptr, HostPageBytes(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, memories_[host], 0);
    pages_[host] = MakeHostPage(address, {epoch, ranks, kHostFileBytes, 0});
    for (int r = 0; pages_.size() > 1 && r < topology_.hosts()[host].ranks; ++r) {
      event_fds_[host].push_back(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    }
  }
}

void FakeDaemon::CloseEpoch() {
  for (size_t host = 0; host < pages_.size(); ++host) {
    if (pages_[host] == nullptr) continue;
    munmap(pages_[host], HostPageBytes(topology_.hosts()[host].ranks));
    pages_[host] = nullptr;
    close(memories_[host]);
    for (const int fd : event_fds_[host]) close(fd);
    event_fds_[host].clear();
  }
}

bool FakeDaemon::ServeTable(uint64_t epoch) {
  v1::ToDaemon message;
  v1::ToWorker table;
  table.mutable_table()->set_epoch(epoch);
  std::vector<v1::ToWorker> arena_bytes(topology_.hosts().size());
  std::vector<std::vector<int>> arenas(topology_.hosts().size());
  bool all = true;
  for (int r = 0; all && r < topology_.size(); ++r) {
    const int host = topology_.place(r).host;
    int arena = -1;
    all = ReadFrame(connections_[r], &message, &arena);
    pages_[host]->taken.store((message.address().memory_bytes() + 4095) / 4096 * 4096);
    table.mutable_table()->add_addresses(message.address().address());
    arena_bytes[host].mutable_table()->add_arena_bytes(message.address().arena_bytes());
    if (arena >= 0) arenas[host].push_back(arena);
  }
  for (int r = 0; all && r < topology_.size(); ++r) {
    const int host = topology_.place(r).host;
    v1::ToWorker mine = table;
    mine.MergeFrom(arena_bytes[host]);
    WriteFrame(connections_[r], mine, arenas[host]);
  }
  for (const std::vector<int>& fds : arenas) {
    for (const int fd : fds) close(fd);
  }
  return all;
}

bool FakeDaemon::ServeEpoch(uint64_t epoch) {
  v1::ToDaemon message;
  for (int r = 0; r < topology_.size(); ++r) {
    if (!ReadFrame(connections_[r], &message) || !message.has_join()) return false;
    if (r == 0) StartEpoch(epoch);
    v1::ToWorker start;
    start.mutable_epoch_start()->set_epoch(epoch);
    start.mutable_epoch_start()->set_token("token" + std::to_string(100 + epoch));
    start.mutable_epoch_start()->set_rank(r);
    for (const HostShape& shape : topology_.hosts()) {
      v1::WorldHost* told = start.mutable_epoch_start()->add_hosts();
      told->set_name(shape.name);
      told->set_ranks(shape.ranks);
      for (const int rank : shape.numbers) told->add_numbers(rank);
    }
    const int host = topology_.place(r).host;
    std::vector<int> fds = {memories_[host]};
    fds.insert(fds.end(), event_fds_[host].begin(), event_fds_[host].end());
    WriteFrame(connections_[r], start, fds);
  }
  if (!ServeTable(epoch)) return false;
  for (const int fd : connections_) {
    if (!ReadFrame(fd, &message)) return false;
  }
  v1::ToWorker go;
  go.mutable_go()->set_epoch(epoch);
  for (const int fd : connections_) WriteFrame(fd, go);
  for (const int fd : connections_) {
    if (!ReadFrame(fd, &message)) return false;  // leave, or gone
  }
  return true;
}

}  // namespace hvd
