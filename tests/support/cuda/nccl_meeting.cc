// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cuda/nccl_meeting.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace hvd::rt {
namespace {

constexpr size_t kBoxBytes = 256 << 10;  // that wait between two ranks at most

}  // namespace

// A ring between two ranks: counts only grow.
struct NcclMeeting::Box {
  std::atomic<uint64_t> given{0};
  std::atomic<uint64_t> taken{0};
  char bytes[kBoxBytes];
};

struct NcclMeeting::Shared {
  std::atomic<int> come{0};
  Box boxes[1];  // ranks * ranks
};

NcclMeeting::NcclMeeting(const std::string& name, int ranks, int rank)
    : name_(name),
      ranks_(ranks),
      rank_(rank),
      bytes_(sizeof(Shared) + sizeof(Box) * ranks * ranks) {
  const int fd = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return;
  void* place = MAP_FAILED;
  // All give it the same size, and new memory is zeros: nobody has to come first.
  if (ftruncate(fd, static_cast<off_t>(bytes_)) == 0) {
    place = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  close(fd);
  if (place == MAP_FAILED) return;
  shared_ = static_cast<Shared*>(place);
  if (shared_->come.fetch_add(1) + 1 == ranks) unlink(name.c_str());
}

NcclMeeting::~NcclMeeting() {
  if (shared_ == nullptr) return;
  if (!all_there()) unlink(name_.c_str());
  munmap(shared_, bytes_);
}

NcclMeeting::Box& NcclMeeting::BoxOf(int from, int to) const {
  return shared_->boxes[from * ranks_ + to];
}

template <class Ready>
bool NcclMeeting::Await(Ready ready) const {
  while (!ready()) {
    if (left_) return false;
    sched_yield();
  }
  return true;
}

bool NcclMeeting::all_there() const { return shared_->come.load() >= ranks_; }

bool NcclMeeting::Arrive() {
  return Await([this] { return all_there(); });
}

bool NcclMeeting::Send(int to, const char* bytes, size_t count) {
  Box& box = BoxOf(rank_, to);
  while (count > 0) {
    const uint64_t given = box.given.load();
    if (!Await([&] { return given - box.taken.load() < kBoxBytes; })) return false;
    const size_t room = kBoxBytes - (given - box.taken.load());
    const size_t part = std::min({count, room, kBoxBytes - given % kBoxBytes});
    memcpy(box.bytes + given % kBoxBytes, bytes, part);
    box.given.store(given + part);
    bytes += part;
    count -= part;
  }
  return true;
}

bool NcclMeeting::Receive(int from, char* bytes, size_t count) {
  Box& box = BoxOf(from, rank_);
  while (count > 0) {
    const uint64_t taken = box.taken.load();
    if (!Await([&] { return box.given.load() > taken; })) return false;
    const size_t there = box.given.load() - taken;
    const size_t part = std::min({count, there, kBoxBytes - taken % kBoxBytes});
    memcpy(bytes, box.bytes + taken % kBoxBytes, part);
    box.taken.store(taken + part);
    bytes += part;
    count -= part;
  }
  return true;
}

}  // namespace hvd::rt
