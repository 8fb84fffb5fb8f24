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
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace hvd {
namespace {

// What one write gives away. It returns when the reader has made room for all of it, and only then
// it counts as progress: small where a reader may be slow.
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
  // With the lock held: what the next write gives away. Whole lines where one ends in it, since
  // stdout and stderr may be one terminal by two names.
  std::string NextPiece() const;
  void Written(ssize_t bytes, int failure);

  const int fd;
  const int bell;
  const Kind kind;

  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by mutex.
  std::string queue;
  uint64_t written = 0;
  uint64_t drops = 0;
  int error = 0;
  bool closing = false;
};

std::string OutputWriter::Inside::NextPiece() const {
  if (queue.size() <= kind.piece) return queue;
  const size_t newline = queue.rfind('\n', kind.piece - 1);
  return queue.substr(0, newline == queue.npos ? kind.piece : newline + 1);
}

void OutputWriter::Inside::Run() {
  pthread_setname_np(pthread_self(), "hvdrun-writer");
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [this] { return closing || !queue.empty(); });
    if (closing) return;
    const std::string piece = NextPiece();
    const uint64_t drops_before = drops;
    lock.unlock();
    const ssize_t bytes = write(fd, piece.data(), piece.size());
    const int failure = bytes < 0 ? errno : 0;
    if (failure == EAGAIN) {  // who shares the file has made it so
      pollfd room = {fd, POLLOUT, 0};
      poll(&room, 1, -1);
    }
    lock.lock();
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
  const std::lock_guard lock(inside_->mutex);
  inside_->closing = true;
  inside_->changed.notify_all();
}

void OutputWriter::Put(std::string_view bytes) {
  const std::lock_guard lock(inside_->mutex);
  if (inside_->error != 0) return;
  inside_->queue += bytes;
  inside_->changed.notify_all();
}

size_t OutputWriter::waiting() const {
  const std::lock_guard lock(inside_->mutex);
  return inside_->queue.size();
}

uint64_t OutputWriter::progress() const {
  int left = 0;
  if (inside_->kind.left_request != 0) ioctl(inside_->fd, inside_->kind.left_request, &left);
  const std::lock_guard lock(inside_->mutex);
  return (inside_->written << 24) - static_cast<uint64_t>(left);
}

int OutputWriter::error() const {
  const std::lock_guard lock(inside_->mutex);
  return inside_->error;
}

size_t OutputWriter::Drop() {
  const std::lock_guard lock(inside_->mutex);
  const size_t dropped = inside_->queue.size();
  inside_->queue.clear();
  ++inside_->drops;
  return dropped;
}

}  // namespace hvd
