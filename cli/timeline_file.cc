#include "cli/timeline_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvd {
namespace {

constexpr size_t kMostWaiting = 64 << 20;
constexpr size_t kTakenAtOnce = 64 << 10;

int64_t Nanoseconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

}  // namespace

struct TimelineFile::Inside {
  explicit Inside(const Topology& topology) : book(topology) {}

  // Any thread.
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Work> queue;    // guarded by mutex
  size_t waiting_bytes = 0;  // guarded by mutex
  bool too_slow = false;     // guarded by mutex
  bool finished = false;     // guarded by mutex
  std::string failure;       // guarded by mutex

  // The thread's.
  TimelineBook book;
  std::unique_ptr<TimelineFormat> format;
  Descriptor file;
  std::string path;
  off_t at = 0;      // where the next bytes go: over the last End()
  std::string text;  // of Take

  void Run();
  void Do(Work* work);
  void Take(const Work& work);
  void Write(std::string* bytes);
};

void TimelineFile::Inside::Run() {
  pthread_setname_np(pthread_self(), "hvdrun-timeline");
  for (bool last = false; !last;) {
    Work work;
    {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [this] { return !queue.empty(); });
      work = std::move(queue.front());
      queue.pop_front();
      waiting_bytes -= work.bytes.size();
    }
    last = work.kind == Work::kFinish;
    Do(&work);
  }
  const std::lock_guard<std::mutex> lock(mutex);
  finished = true;
  changed.notify_all();
}

void TimelineFile::Inside::Do(Work* work) {
  switch (work->kind) {
    case Work::kBegin:
      file.Reset(work->fd);
      path = work->bytes;
      at = 0;
      format = TimelineFormatFor(path);
      text = book.BeginFile(format.get(), Nanoseconds(CLOCK_MONOTONIC),
                            Nanoseconds(CLOCK_REALTIME) / 1000);
      return Write(&text);
    case Work::kTake:
      return Take(*work);
    case Work::kEnd:
    case Work::kFinish:
      book.EndFile();
      file.Reset();
      return;
  }
}

// Piece by piece: what is written should come from the caches, for the ranks may need the memory.
void TimelineFile::Inside::Take(const Work& work) {
  for (size_t from = 0; from < work.bytes.size(); from += kTakenAtOnce) {
    text.clear();
    book.Take(work.host, std::string_view(work.bytes).substr(from, kTakenAtOnce), work.offset_ns,
              &text);
    Write(&text);
  }
}

// After every write the file is whole; the next one begins where its end began. Adds that to
// `bytes`.
void TimelineFile::Inside::Write(std::string* bytes) {
  if (!file || bytes->empty()) return;
  const size_t without_end = bytes->size();
  *bytes += format->End();
  for (size_t done = 0; done < bytes->size();) {
    const ssize_t n = pwrite(file.get(), bytes->data() + done, bytes->size() - done,
                             at + static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const std::lock_guard<std::mutex> lock(mutex);
      failure = absl::StrCat("the timeline ", path, " is incomplete: ", strerror(errno));
      return file.Reset();
    }
    done += n;
  }
  at += static_cast<off_t>(without_end);
}

TimelineFile::TimelineFile(const Topology& topology) : inside_(std::make_shared<Inside>(topology)) {
  std::thread([inside = inside_] { inside->Run(); }).detach();
}

TimelineFile::~TimelineFile() { Put({Work::kFinish, 0, "", 0, -1}); }

void TimelineFile::Put(Work work) {
  const std::lock_guard<std::mutex> lock(inside_->mutex);
  if (work.kind == Work::kTake) {
    // A stream with a hole could not be read on.
    inside_->too_slow |= inside_->waiting_bytes > kMostWaiting;
    if (inside_->too_slow) return;
  }
  inside_->waiting_bytes += work.bytes.size();
  inside_->queue.push_back(std::move(work));
  inside_->changed.notify_all();
}

absl::Status TimelineFile::Begin(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write the timeline ", path));
  }
  Put({Work::kBegin, 0, path, 0, fd});
  return absl::OkStatus();
}

void TimelineFile::End() { Put({Work::kEnd, 0, "", 0, -1}); }

void TimelineFile::Take(int host, std::string bytes, int64_t offset_ns) {
  Put({Work::kTake, host, std::move(bytes), offset_ns, -1});
}

std::string TimelineFile::Finish(double seconds) {
  Put({Work::kFinish, 0, "", 0, -1});
  std::unique_lock<std::mutex> lock(inside_->mutex);
  const bool done = inside_->changed.wait_for(lock, std::chrono::duration<double>(seconds),
                                              [this] { return inside_->finished; });
  if (!done) return "the timeline could not be written in time; its end is missing";
  if (!inside_->failure.empty()) return inside_->failure;
  if (inside_->too_slow) return "the timeline ends early: its file system is too slow";
  return "";
}

}  // namespace hvd
