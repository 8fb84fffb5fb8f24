#include "runtime/collective/host_group.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>

#include "absl/strings/str_format.h"

namespace hvd {
namespace {

ssize_t ReadMemory(int pid, uint64_t address, void* to, size_t bytes) {
  const iovec local{to, bytes};
  const iovec remote{reinterpret_cast<void*>(address), bytes};  // NOLINT(performance-no-int-to-ptr)
  return process_vm_readv(pid, &local, 1, &remote, 1, 0);
}

uint64_t RandomWord() {
  std::random_device random;
  return (static_cast<uint64_t>(random()) << 32) | random();
}

}  // namespace

template <class Reached>
absl::Status HostGroup::AwaitPeers(const Reached& reached) {
  int next = 0;
  return waiter_->Until([&] {
    while (next < size_ && (next == rank_ || reached(next))) ++next;
    return next == size_;
  });
}

HostGroup::HostGroup(const HostGroupOptions& options)
    : waiter_(options.waiter),
      region_(options.region, options.local_size),
      rank_(options.local_rank),
      size_(options.local_size),
      word_(RandomWord()),
      pids_(options.local_size) {}

absl::StatusOr<std::unique_ptr<HostGroup>> HostGroup::Create(const HostGroupOptions& options) {
  std::unique_ptr<HostGroup> group(new HostGroup(options));
  if (absl::Status met = group->Introduce(options.try_peer_read); !met.ok()) return met;
  return group;
}

// Whether a peer's memory can be read depends on namespaces, Yama, seccomp and credentials: trying
// it is the only honest test. All ranks must come to the same answer.
absl::Status HostGroup::Introduce(bool try_peer_read) {
  Introduction& mine = region_.board(rank_).introduction;
  mine.pid = getpid();
  mine.word_address = reinterpret_cast<uint64_t>(&word_);
  mine.word = word_;
  mine.said.store(1, std::memory_order_release);
  waiter_->Ring();
  absl::Status met = AwaitPeers([&](int peer) {
    return region_.board(peer).introduction.said.load(std::memory_order_acquire) != 0;
  });
  if (!met.ok()) return met;

  const bool reads_all = try_peer_read && ReadsAllIntroductions();
  mine.can_read_all.store(reads_all ? 2 : 1, std::memory_order_release);
  waiter_->Ring();
  met = AwaitPeers([&](int peer) {
    return region_.board(peer).introduction.can_read_all.load(std::memory_order_acquire) != 0;
  });
  if (!met.ok()) return met;
  can_read_peers_ = true;
  for (int peer = 0; peer < size_; ++peer) {
    const Introduction& theirs = region_.board(peer).introduction;
    pids_[peer] = static_cast<int>(theirs.pid);
    can_read_peers_ &= theirs.can_read_all.load(std::memory_order_relaxed) == 2;
  }
  return absl::OkStatus();
}

bool HostGroup::ReadsAllIntroductions() const {
  for (int peer = 0; peer < size_; ++peer) {
    const Introduction& theirs = region_.board(peer).introduction;
    uint64_t word = 0;
    const ssize_t n =
        ReadMemory(static_cast<int>(theirs.pid), theirs.word_address, &word, sizeof(word));
    if (n != sizeof(word) || word != theirs.word) return false;
  }
  return true;
}

absl::Status HostGroup::Begin() {
  if (absl::Status alive = Check(); !alive.ok()) return alive;
  if (all_started_ < operation_) {
    absl::Status started = AwaitMarks();
    if (!started.ok()) return started;
  }
  ++operation_;
  return absl::OkStatus();
}

void HostGroup::PublishMark(absl::Span<const std::byte> payload) {
  Mark& mark = region_.board(rank_).marks[operation_ % 2];
  if (!payload.empty()) memcpy(mark.payload, payload.data(), payload.size());
  mark.operation.store(operation_, std::memory_order_release);
  waiter_->Ring();
}

absl::Status HostGroup::AwaitMark(int peer) {
  const std::atomic<uint64_t>& theirs = MarkOf(peer).operation;
  return waiter_->Until([&] { return theirs.load(std::memory_order_acquire) >= operation_; });
}

absl::Status HostGroup::AwaitMarks() {
  absl::Status all = AwaitPeers([&](int peer) {
    return MarkOf(peer).operation.load(std::memory_order_acquire) >= operation_;
  });
  if (all.ok()) all_started_ = operation_;
  return all;
}

std::atomic<uint64_t>& HostGroup::CounterOf(int peer, Counter counter) const {
  RankBoard& board = region_.board(peer);
  switch (counter) {
    case kStaged:
      return board.staged;
    case kReduced:
      return board.reduced;
    case kConsumed:
      break;
  }
  return board.consumed;
}

absl::Status HostGroup::AwaitStage(uint64_t round) {
  if (round < HostRegion::kStages) return absl::OkStatus();
  return AwaitAll(kConsumed, round - HostRegion::kStages + 1);
}

void HostGroup::Advance(Counter counter, uint64_t rounds) {
  CounterOf(rank_, counter).store(rounds, std::memory_order_release);
  waiter_->Ring();
}

absl::Status HostGroup::Await(Counter counter, int peer, uint64_t rounds) {
  const std::atomic<uint64_t>& theirs = CounterOf(peer, counter);
  return waiter_->Until([&] { return theirs.load(std::memory_order_acquire) >= rounds; });
}

absl::Status HostGroup::AwaitAll(Counter counter, uint64_t rounds) {
  return AwaitPeers(
      [&](int peer) { return CounterOf(peer, counter).load(std::memory_order_acquire) >= rounds; });
}

absl::Status HostGroup::ReadPeer(int peer, uint64_t address, void* to, size_t bytes) {
  auto* at = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const ssize_t n = ReadMemory(pids_[peer], address, at, bytes);
    if (n <= 0) {
      // A peer that left an aborted epoch may have unmapped what was being read.
      return waiter_->EndEpoch(absl::StrFormat(
          "local rank %d cannot read %d bytes at %#x in the memory of local rank %d (pid %d): %s",
          rank_, bytes, address, peer, pids_[peer], n == 0 ? "nothing there" : strerror(errno)));
    }
    at += n;
    address += n;
    bytes -= n;
  }
  return absl::OkStatus();
}

}  // namespace hvd
