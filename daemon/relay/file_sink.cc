#include "daemon/relay/file_sink.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvd {
namespace {

// mkdir -p with 0700.
bool MakeDirectories(const std::string& path) {
  for (size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) return false;
    if (at == std::string::npos) return true;
  }
}

bool WriteAll(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = write(fd, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    data.remove_prefix(n);
  }
  return true;
}

}  // namespace

FileSink::FileSink(FileSinkOptions options)
    : options_(std::move(options)), writer_([this] { Write(); }) {}

FileSink::~FileSink() {
  {
    const std::lock_guard lock(mutex_);
    finishing_ = true;
    changed_.notify_all();
  }
  if (writer_.joinable()) writer_.join();
}

size_t FileSink::Room() {
  const std::lock_guard lock(mutex_);
  if (failed_) return SIZE_MAX;
  const size_t room = queue_.size() < kRoom ? kRoom - queue_.size() : 0;
  if (room == 0) wants_room_ = true;
  return room;
}

void FileSink::Append(std::string_view data) {
  const std::lock_guard lock(mutex_);
  if (failed_) return;
  queue_ += data;
  changed_.notify_all();
}

bool FileSink::healthy() const {
  const std::lock_guard lock(mutex_);
  return !failed_;
}

bool FileSink::Finish(TimePoint deadline) {
  std::unique_lock lock(mutex_);
  finishing_ = true;
  changed_.notify_all();
  if (!changed_.wait_until(lock, deadline, [this] { return finished_; })) return false;
  lock.unlock();
  if (writer_.joinable()) writer_.join();  // it only returns now
  return true;
}

void FileSink::Write() {
  pthread_setname_np(pthread_self(), "hvdd-sink");
  const UniqueFd file(Open());
  std::unique_lock lock(mutex_);
  while (!failed_) {
    changed_.wait(lock, [this] { return !queue_.empty() || finishing_; });
    if (queue_.empty()) break;
    const std::string batch = std::exchange(queue_, {});
    const bool call_room = std::exchange(wants_room_, false);
    lock.unlock();
    if (!WriteAll(file.get(), batch)) Fail("writing");
    if (call_room) options_.on_room();
    lock.lock();
  }
  finished_ = true;
  changed_.notify_all();
}

int FileSink::Open() {
  const std::string path = options_.directory + "/" + options_.name;
  int fd = -1;
  if (MakeDirectories(options_.directory)) {
    fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  }
  if (fd < 0) Fail("opening");
  return fd;
}

void FileSink::Fail(const std::string& what) {
  const std::string why =
      absl::StrCat(what, " ", options_.directory, "/", options_.name, ": ", strerrordesc_np(errno),
                   "; the rest of this stream goes to the console only");
  bool call_room = false;
  {
    const std::lock_guard lock(mutex_);
    failed_ = true;
    queue_.clear();
    call_room = std::exchange(wants_room_, false);
  }
  options_.on_fail(why);
  if (call_room) options_.on_room();
}

}  // namespace hvd
