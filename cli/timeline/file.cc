#include "cli/timeline/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/own_file.h"
#include "base/printable.h"

namespace hvd {
namespace {

constexpr size_t kMostWaiting = 64 << 20;
constexpr size_t kTakenAtOnce = 64 << 10;
constexpr char kTooSlow[] = "the timeline ends early: its file system is too slow";

int64_t Nanoseconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

absl::Status CannotWrite(const std::string& path, absl::string_view reason) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot write the timeline ", Printable(path), ": ", reason));
}

// Opens what bytes can be written over. What lies there already is not touched yet.
absl::StatusOr<Descriptor> OpenRegular(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string parent = slash == path.npos ? "." : path.substr(0, slash + 1);
  const absl::StatusOr<int> directory = OpenOwnDirectory(parent, false);
  if (!directory.ok()) return CannotWrite(path, directory.status().message());
  const Descriptor place(*directory);
  const absl::StatusOr<int> file = OpenOwnFile(place.get(), path.substr(slash + 1));
  if (!file.ok()) return CannotWrite(path, file.status().message());
  return Descriptor(*file);
}

}  // namespace

struct TimelineFile::Inside {
  explicit Inside(const Topology& topology) : book(topology) {}

  // Any thread.
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Work> queue;             // guarded by mutex
  size_t waiting_bytes = 0;           // guarded by mutex
  bool too_slow = false;              // guarded by mutex
  bool finished = false;              // guarded by mutex
  std::string failure;                // guarded by mutex
  uint64_t last_begin = 0;            // guarded by mutex
  bool begin_wanted = false;          // guarded by mutex: somebody waits for the last one's outcome
  std::optional<absl::Status> begun;  // guarded by mutex: that outcome
  uint64_t last_end = 0;              // guarded by mutex
  std::optional<absl::Status> ended;  // guarded by mutex: the outcome of the last End
  const Descriptor event = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));

  // The thread's.
  TimelineBook book;
  std::unique_ptr<TimelineFormat> format;
  Descriptor file;
  std::string path;
  off_t at = 0;       // where the next bytes go: over the last End()
  std::string text;   // of Take
  std::string wrong;  // what happened to the file, or to the last one

  void Run();
  void Do(Work* work);
  void Begin(const Work& work);
  bool TellBegun(const Work& work, absl::Status outcome);
  void End(const Work& work);
  void Fail();
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
      return Begin(*work);
    case Work::kTake:
      return Take(*work);
    case Work::kEnd:
      return End(*work);
    case Work::kFinish:
      book.EndFile();
      file.Reset();
      return;
  }
}

void TimelineFile::Inside::Begin(const Work& work) {
  absl::StatusOr<Descriptor> opened = OpenRegular(work.bytes);
  if (!TellBegun(work, opened.status()) || !opened.ok()) return;
  file = *std::move(opened);
  path = work.bytes;
  at = 0;
  wrong.clear();
  if (ftruncate(file.get(), 0) != 0) return Fail();
  format = TimelineFormatFor(path);
  text = book.BeginFile(format.get(), Nanoseconds(CLOCK_MONOTONIC),
                        Nanoseconds(CLOCK_REALTIME) / 1000);
  Write(&text);
}

// False: nobody waits for it any more.
bool TimelineFile::Inside::TellBegun(const Work& work, absl::Status outcome) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (!begin_wanted || work.number != last_begin) return false;
  begin_wanted = false;
  begun = std::move(outcome);
  eventfd_write(event.get(), 1);
  return true;
}

// What was queued before is in the file.
void TimelineFile::Inside::End(const Work& work) {
  book.EndFile();
  file.Reset();
  const std::lock_guard<std::mutex> lock(mutex);
  if (work.number != last_end) return;
  if (wrong.empty() && too_slow) wrong = kTooSlow;
  ended = wrong.empty() ? absl::OkStatus() : absl::DataLossError(wrong);
  eventfd_write(event.get(), 1);
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
// `bytes`. A kill within the write may cut it at a page's end, which viewers of traces forgive.
void TimelineFile::Inside::Write(std::string* bytes) {
  if (!file.valid() || bytes->empty()) return;
  const size_t without_end = bytes->size();
  *bytes += format->End();
  for (size_t done = 0; done < bytes->size();) {
    const ssize_t n = pwrite(file.get(), bytes->data() + done, bytes->size() - done,
                             at + static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Fail();
    done += n;
  }
  at += static_cast<off_t>(without_end);
}

// errno says what went wrong. Nothing more is written to this file.
void TimelineFile::Inside::Fail() {
  wrong = absl::StrCat("the timeline ", Printable(path), " is incomplete: ", strerror(errno));
  file.Reset();
  const std::lock_guard<std::mutex> lock(mutex);
  failure = wrong;
}

TimelineFile::TimelineFile(const Topology& topology) : inside_(std::make_shared<Inside>(topology)) {
  std::thread([inside = inside_] { inside->Run(); }).detach();
}

TimelineFile::~TimelineFile() { Put({Work::kFinish}); }

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

void TimelineFile::Begin(const std::string& path) {
  Work work = {Work::kBegin, 0, path};
  {
    const std::lock_guard<std::mutex> lock(inside_->mutex);
    work.number = ++inside_->last_begin;
    inside_->begin_wanted = true;
    inside_->begun.reset();
  }
  Put(std::move(work));
}

std::optional<absl::Status> TimelineFile::TakeBegun() {
  const std::lock_guard<std::mutex> lock(inside_->mutex);
  return std::exchange(inside_->begun, std::nullopt);
}

void TimelineFile::GiveUpBegin() {
  const std::lock_guard<std::mutex> lock(inside_->mutex);
  inside_->begin_wanted = false;
}

int TimelineFile::event_fd() const { return inside_->event.get(); }

void TimelineFile::End() {
  Work work = {Work::kEnd};
  {
    const std::lock_guard<std::mutex> lock(inside_->mutex);
    work.number = ++inside_->last_end;
    inside_->ended.reset();
  }
  Put(std::move(work));
}

std::optional<absl::Status> TimelineFile::TakeEnded() {
  const std::lock_guard<std::mutex> lock(inside_->mutex);
  return std::exchange(inside_->ended, std::nullopt);
}

void TimelineFile::Take(int host, std::string bytes, int64_t offset_ns) {
  Put({Work::kTake, host, std::move(bytes), offset_ns});
}

std::string TimelineFile::Finish(double seconds) {
  Put({Work::kFinish});
  std::unique_lock<std::mutex> lock(inside_->mutex);
  const bool done = inside_->changed.wait_for(lock, std::chrono::duration<double>(seconds),
                                              [this] { return inside_->finished; });
  if (!done) return "the timeline could not be written in time; its end is missing";
  if (!inside_->failure.empty()) return inside_->failure;
  if (inside_->too_slow) return kTooSlow;
  return inside_->book.given_up();  // the thread is done with it
}

}  // namespace hvd
