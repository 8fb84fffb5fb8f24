// SPDX-License-Identifier: Apache-2.0
#include "cli/console/rank_files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <set>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/descriptor.h"
#include "base/mutex.h"
#include "base/own_file.h"
#include "base/printable.h"

namespace hvd::cli {
namespace {

struct Piece {
  int rank = 0;
  bool is_stderr = false;
  std::string bytes;
};

// The bytes that a waiting piece counts as: one more, so that an empty one, an end, is not lost.
size_t CostOf(const Piece& piece) { return piece.bytes.size() + 1; }

absl::Status WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return absl::UnknownError(strerror(errno));
    bytes.remove_prefix(done);
  }
  return absl::OkStatus();
}

}  // namespace

std::string RankFolder(int rank, int ranks) {
  return absl::StrFormat("rank.%0*d", static_cast<int>(absl::StrCat(ranks - 1).size()), rank);
}

struct RankFiles::Inside {
  Inside(std::string directory, int ranks, int bell)
      : directory(std::move(directory)), ranks(ranks), bell(bell) {}

  void Run();
  absl::Status Write(const Piece& piece) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer);

  const std::string directory;
  const int ranks;
  const int bell;
  ThreadRole writer;  // the thread that runs Run
  // These files are ours and are appended to.
  std::set<std::pair<int, bool>> begun ABSL_GUARDED_BY(writer);

  Mutex mutex;
  Condition changed;
  std::deque<Piece> queue ABSL_GUARDED_BY(mutex);
  size_t waiting ABSL_GUARDED_BY(mutex) = 0;
  uint64_t written ABSL_GUARDED_BY(mutex) = 0;  // pieces
  std::string failure ABSL_GUARDED_BY(mutex);
  bool closing ABSL_GUARDED_BY(mutex) = false;
};

// Each time opened anew: a job may have more ranks than a process has descriptors.
absl::Status RankFiles::Inside::Write(const Piece& piece) {
  const auto base = OpenOwnDirectory(directory, true);
  if (!base.ok()) return base.status();
  const Descriptor base_owner(*base);
  const auto folder = OpenOwnSubdirectory(*base, RankFolder(piece.rank, ranks));
  if (!folder.ok()) return folder.status();
  const Descriptor folder_owner(*folder);
  const auto file = OpenOwnFile(*folder, piece.is_stderr ? "stderr" : "stdout");
  if (!file.ok()) return file.status();
  const Descriptor file_owner(*file);
  const bool first = begun.insert({piece.rank, piece.is_stderr}).second;
  const bool placed = first ? ftruncate(*file, 0) == 0 : lseek(*file, 0, SEEK_END) >= 0;
  if (!placed) return absl::UnknownError(strerror(errno));
  return WriteAll(*file, piece.bytes);
}

void RankFiles::Inside::Run() {
  pthread_setname_np(pthread_self(), "hvdrun-files");
  writer.AssertHeld();
  MutexLock lock(&mutex);
  while (true) {
    while (!closing && queue.empty()) changed.Wait(&mutex);
    if (closing) return;
    const Piece piece = std::move(queue.front());
    queue.pop_front();
    lock.Unlock();
    const absl::Status status = Write(piece);
    lock.Lock();
    ++written;
    waiting -= std::min(waiting, CostOf(piece));
    if (!status.ok() && failure.empty()) {
      failure =
          absl::StrCat("cannot write ", Printable(directory), "/", RankFolder(piece.rank, ranks),
                       "/", piece.is_stderr ? "stderr" : "stdout", ": ", status.message());
      closing = true;
    }
    if (closing || queue.empty()) eventfd_write(bell, 1);
  }
}

RankFiles::RankFiles(std::string directory, int ranks, int bell)
    : inside_(std::make_shared<Inside>(std::move(directory), ranks, bell)) {
  std::thread([inside = inside_] { inside->Run(); }).detach();
}

RankFiles::~RankFiles() {
  const MutexLock lock(&inside_->mutex);
  inside_->closing = true;
  inside_->changed.NotifyAll();
}

void RankFiles::Put(int rank, bool is_stderr, std::string_view bytes, bool end) {
  if (rank < 0 || rank >= inside_->ranks || (bytes.empty() && !end)) return;
  const MutexLock lock(&inside_->mutex);
  if (inside_->closing) return;
  inside_->queue.push_back({rank, is_stderr, std::string(bytes)});
  inside_->waiting += CostOf(inside_->queue.back());
  inside_->changed.NotifyAll();
}

size_t RankFiles::waiting() const {
  const MutexLock lock(&inside_->mutex);
  return inside_->closing ? 0 : inside_->waiting;
}

std::string RankFiles::failure() const {
  const MutexLock lock(&inside_->mutex);
  return inside_->failure;
}

void RankFiles::Age(double seconds, double patience) {
  const MutexLock lock(&inside_->mutex);
  const bool moved = inside_->waiting == 0 || inside_->written != progress_;
  progress_ = inside_->written;
  idle_s_ = moved ? 0 : idle_s_ + seconds;
  if (inside_->closing || idle_s_ < patience) return;
  inside_->closing = true;
  inside_->failure =
      absl::StrCat("the file system of ", Printable(inside_->directory), " does not answer; ",
                   inside_->waiting, " bytes of output are missing there");
}

}  // namespace hvd::cli
