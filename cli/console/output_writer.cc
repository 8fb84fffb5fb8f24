// SPDX-License-Identifier: Apache-2.0
#include "cli/console/output_writer.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>

#include "base/mutex.h"

namespace hvd::cli {
namespace {

// The bytes that one write gives away. It returns when the reader has made room for all of them,
// and only then they count as progress: few where a reader may be slow.
constexpr size_t kPipePiece = 4096;
constexpr size_t kTerminalPiece = 512;
constexpr size_t kFilePiece = 64 * 1024;

struct Kind {
  size_t piece = kFilePiece;
  unsigned long left_request = 0;  // the ioctl that says what the reader has yet to take; 0: none
};

Kind KindOf(int fd) {
  struct stat about;
  if (isatty(fd) != 0) return {kTerminalPiece, 0};
  if (fstat(fd, &about) == 0 && S_ISFIFO(about.st_mode)) return {kPipePiece, FIONREAD};
  if (fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode)) return {kPipePiece, SIOCOUTQ};
  return {};
}

}  // namespace

struct OutputWriter::Inside {
  Inside(int fd, int bell) : fd(fd), bell(bell), kind(KindOf(fd)) {}

  void Run();
  // Returns the bytes that the next write gives away: whole lines where a line ends in them, since
  // stdout and stderr may be one terminal by two names.
  std::string NextPiece() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Written(ssize_t bytes, int failure) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  const int fd;
  const int bell;
  const Kind kind;

  Mutex mutex;
  Condition changed;
  std::string queue ABSL_GUARDED_BY(mutex);
  uint64_t written ABSL_GUARDED_BY(mutex) = 0;  // bytes
  uint64_t drops ABSL_GUARDED_BY(mutex) = 0;
  int error ABSL_GUARDED_BY(mutex) = 0;
  bool closing ABSL_GUARDED_BY(mutex) = false;
};

std::string OutputWriter::Inside::NextPiece() const {
  if (queue.size() <= kind.piece) return queue;
  const size_t newline = queue.rfind('\n', kind.piece - 1);
  return queue.substr(0, newline == queue.npos ? kind.piece : newline + 1);
}

void OutputWriter::Inside::Run() {
  pthread_setname_np(pthread_self(), "hvdrun-writer");
  MutexLock lock(&mutex);
  while (true) {
    while (!closing && queue.empty()) changed.Wait(&mutex);
    if (closing) return;
    const std::string piece = NextPiece();
    const uint64_t drops_before = drops;
    lock.Unlock();
    const ssize_t bytes = write(fd, piece.data(), piece.size());
    const int failure = bytes < 0 ? errno : 0;
    if (failure == EAGAIN) {  // who shares the file has made it so
      pollfd room = {fd, POLLOUT, 0};
      poll(&room, 1, -1);
    }
    lock.Lock();
    if (drops == drops_before) Written(bytes, failure);
  }
}

void OutputWriter::Inside::Written(ssize_t bytes, int failure) {
  if (failure == EINTR || failure == EAGAIN) return;
  if (failure != 0) {
    error = failure;
    closing = true;
  } else {
    queue.erase(0, bytes);
    written += bytes;
  }
  if (failure != 0 || queue.empty()) eventfd_write(bell, 1);
}

OutputWriter::OutputWriter(int fd, int bell) : inside_(std::make_shared<Inside>(fd, bell)) {
  std::thread([inside = inside_] { inside->Run(); }).detach();
}

OutputWriter::~OutputWriter() {
  const MutexLock lock(&inside_->mutex);
  inside_->closing = true;
  inside_->changed.NotifyAll();
}

void OutputWriter::Put(std::string_view bytes) {
  const MutexLock lock(&inside_->mutex);
  if (inside_->error != 0) return;
  inside_->queue += bytes;
  inside_->changed.NotifyAll();
}

size_t OutputWriter::waiting() const {
  const MutexLock lock(&inside_->mutex);
  return inside_->queue.size();
}

uint64_t OutputWriter::progress() const {
  int left = 0;
  if (inside_->kind.left_request != 0) ioctl(inside_->fd, inside_->kind.left_request, &left);
  const MutexLock lock(&inside_->mutex);
  return (inside_->written << 24) - static_cast<uint64_t>(left);
}

int OutputWriter::error() const {
  const MutexLock lock(&inside_->mutex);
  return inside_->error;
}

size_t OutputWriter::Drop() {
  const MutexLock lock(&inside_->mutex);
  const size_t dropped = inside_->queue.size();
  inside_->queue.clear();
  ++inside_->drops;
  return dropped;
}

}  // namespace hvd::cli
