// SPDX-License-Identifier: Apache-2.0
#include "daemon/relay/file_sink.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/own_file.h"
#include "base/printable.h"

namespace hvd::daemon {
namespace {

bool WriteAll(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = write(fd, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    data.remove_prefix(n);
  }
  return true;
}

std::string PathOf(const FileSinkOptions& place) {
  return absl::StrCat(place.base, "/", place.directory, "/", place.name);
}

}  // namespace

FileSink::FileSink(FileSinkOptions options)
    : options_(std::move(options)), directory_(options_.directory), writer_([this] { Write(); }) {}

FileSink::~FileSink() {
  {
    const MutexLock lock(&mutex_);
    finishing_ = true;
    changed_.NotifyAll();
  }
  if (writer_.joinable()) writer_.join();
}

size_t FileSink::Room() {
  const MutexLock lock(&mutex_);
  if (!failure_.empty()) return SIZE_MAX;
  const size_t room = queued_ < kRoom ? kRoom - queued_ : 0;
  if (room == 0) wants_room_ = true;
  return room;
}

void FileSink::Append(std::string_view data) {
  const MutexLock lock(&mutex_);
  if (!failure_.empty()) return;
  if (queue_.empty()) queue_.emplace_back();
  queue_.back().bytes += data;
  queued_ += data.size();
  changed_.NotifyAll();
}

void FileSink::MoveTo(std::string directory) {
  const MutexLock lock(&mutex_);
  if (!failure_.empty() || directory == directory_) return;
  directory_ = std::move(directory);
  FileSinkOptions place = options_;
  place.directory = directory_;
  place.appends = true;
  queue_.push_back({std::move(place), ""});
  changed_.NotifyAll();
}

bool FileSink::healthy() const {
  const MutexLock lock(&mutex_);
  return failure_.empty();
}

std::string FileSink::failure() const {
  const MutexLock lock(&mutex_);
  return failure_;
}

void FileSink::Close() {
  const MutexLock lock(&mutex_);
  finishing_ = true;
  changed_.NotifyAll();
}

std::string FileSink::path() const {
  const MutexLock lock(&mutex_);
  FileSinkOptions place = options_;
  place.directory = directory_;
  return PathOf(place);
}

bool FileSink::Finish(TimePoint deadline) {
  MutexLock lock(&mutex_);
  finishing_ = true;
  changed_.NotifyAll();
  while (!finished_) {
    if (!changed_.WaitUntil(&mutex_, deadline) && !finished_) return false;
  }
  lock.Unlock();
  if (writer_.joinable()) writer_.join();  // it only returns now
  return true;
}

void FileSink::Write() {
  pthread_setname_np(pthread_self(), "hvdd-sink");
  const absl::StatusOr<int> opened = Open(options_);
  Target target = {PathOf(options_), Descriptor(opened.value_or(-1))};
  if (opened.ok()) {
    WriteQueue(&target);
  } else {
    Fail(target, "opening", opened.status().message());
  }
  {
    const MutexLock lock(&mutex_);
    finished_ = true;
    changed_.NotifyAll();
  }
  if (options_.on_finished) options_.on_finished();
}

void FileSink::WriteQueue(Target* target) {
  MutexLock lock(&mutex_);
  while (failure_.empty()) {
    while (queue_.empty() && !finishing_) changed_.Wait(&mutex_);
    if (queue_.empty()) break;
    const std::deque<Batch> batches = std::exchange(queue_, {});
    queued_ = 0;
    const bool call_room = std::exchange(wants_room_, false);
    lock.Unlock();
    for (const Batch& batch : batches) {
      if (!WriteBatch(batch, target)) break;
    }
    if (call_room) options_.on_room();
    lock.Lock();
  }
  lock.Unlock();
  CloseFile(target);
}

bool FileSink::WriteBatch(const Batch& batch, Target* target) {
  if (batch.open.has_value()) {
    if (!CloseFile(target)) return false;
    const absl::StatusOr<int> opened = Open(*batch.open);
    *target = {PathOf(*batch.open), Descriptor(opened.value_or(-1))};
    if (!opened.ok()) Fail(*target, "opening", opened.status().message());
    if (!opened.ok()) return false;
  }
  const bool written = WriteAll(target->file.get(), batch.bytes);
  if (!written) Fail(*target, "writing", strerrordesc_np(errno));
  return written;
}

// A file system on another machine may say only now that it has no room.
bool FileSink::CloseFile(Target* target) {
  if (close(target->file.Release()) == 0 || errno == EINTR || !healthy()) return true;
  Fail(*target, "closing", strerrordesc_np(errno));
  return false;
}

absl::StatusOr<int> FileSink::Open(const FileSinkOptions& place) {
  const absl::StatusOr<int> base = OpenOwnDirectory(place.base, true);
  if (!base.ok()) return base.status();
  const Descriptor base_held(*base);
  const absl::StatusOr<int> directory = OpenOwnSubdirectory(*base, place.directory);
  if (!directory.ok()) return directory.status();
  const Descriptor directory_held(*directory);
  absl::StatusOr<int> file = OpenOwnFile(*directory, place.name);
  const bool at_end = place.appends || place.shared;
  const bool fine = !file.ok() || ((place.appends || ftruncate(*file, 0) == 0) &&
                                   (!at_end || fcntl(*file, F_SETFL, O_APPEND) == 0));
  if (!fine) {
    const Descriptor held(*file);
    return absl::UnavailableError(strerrordesc_np(errno));
  }
  return file;
}

void FileSink::Fail(const Target& target, absl::string_view what, absl::string_view reason) {
  const std::string why =
      absl::StrCat(what, " ", Printable(target.path), ": ", Printable(std::string(reason)));
  bool call_room = false;
  {
    const MutexLock lock(&mutex_);
    failure_ = why;
    queue_.clear();
    queued_ = 0;
    call_room = std::exchange(wants_room_, false);
  }
  options_.on_fail(why + "; the rest of this stream goes to the console only");
  if (call_room) options_.on_room();
}

}  // namespace hvd::daemon
