// SPDX-License-Identifier: Apache-2.0
#include "cli/timeline/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/own_file.h"
#include "base/printable.h"

namespace hvd::cli {
namespace {

constexpr size_t kMostWaiting = 64 << 20;
constexpr size_t kTakenAtOnce = 64 << 10;
constexpr char kTooSlow[] = "the timeline ends early: its file system is too slow";

int64_t CalendarMicroseconds() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

absl::Status CannotWrite(const std::string& path, absl::string_view reason) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot write the timeline ", Printable(path), ": ", reason));
}

// Opens what bytes can be written over. The bytes that lie there already are not touched yet.
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

  Mutex mutex;
  Condition changed;
  std::deque<Work> queue ABSL_GUARDED_BY(mutex);
  size_t waiting_bytes ABSL_GUARDED_BY(mutex) = 0;
  bool too_slow ABSL_GUARDED_BY(mutex) = false;
  bool finished ABSL_GUARDED_BY(mutex) = false;
  std::string failure ABSL_GUARDED_BY(mutex);
  uint64_t last_begin ABSL_GUARDED_BY(mutex) = 0;
  bool begin_wanted ABSL_GUARDED_BY(mutex) = false;  // somebody waits for the last one's outcome
  std::optional<absl::Status> begun ABSL_GUARDED_BY(mutex);  // that outcome
  uint64_t last_end ABSL_GUARDED_BY(mutex) = 0;
  std::optional<absl::Status> ended ABSL_GUARDED_BY(mutex);  // the outcome of the last End
  const Descriptor event = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));

  ThreadRole writer;  // the thread that runs Run; whoever has seen `finished` follows it
  TimelineBook book ABSL_GUARDED_BY(writer);
  std::unique_ptr<TimelineFormat> format ABSL_GUARDED_BY(writer);
  Descriptor file ABSL_GUARDED_BY(writer);
  std::string path ABSL_GUARDED_BY(writer);
  off_t at ABSL_GUARDED_BY(writer) = 0;      // where the next bytes go: over the last End()
  std::string text ABSL_GUARDED_BY(writer);  // of Take
  // The fault of the file, or of the last one; empty: none.
  std::string wrong ABSL_GUARDED_BY(writer);

  void Run();
  void Do(Work* work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer);
  void Begin(const Work& work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer);
  bool TellBegun(const Work& work, absl::Status outcome);
  void End(const Work& work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer);
  void Fail() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer);
  void Take(const Work& work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer);
  void Write(std::string* bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer);
};

void TimelineFile::Inside::Run() {
  pthread_setname_np(pthread_self(), "hvdrun-timeline");
  writer.AssertHeld();
  for (bool last = false; !last;) {
    Work work;
    {
      MutexLock lock(&mutex);
      while (queue.empty()) changed.Wait(&mutex);
      work = std::move(queue.front());
      queue.pop_front();
      waiting_bytes -= work.bytes.size();
    }
    last = work.kind == Work::kFinish;
    Do(&work);
  }
  const MutexLock lock(&mutex);
  finished = true;
  changed.NotifyAll();
}

void TimelineFile::Inside::Do(Work* work) {
  switch (work->kind) {
    case Work::kBegin:
      return Begin(*work);
    case Work::kTake:
      return Take(*work);
    case Work::kEnd:
      return End(*work);
    case Work::kEpoch:
      text.clear();
      book.BeginEpoch(work->epoch, &text);
      if (!text.empty()) Write(&text);
      return;
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
  text = book.BeginFile(format.get(), MonotonicNanoseconds(), CalendarMicroseconds());
  Write(&text);
}

// False: nobody waits for it any more.
bool TimelineFile::Inside::TellBegun(const Work& work, absl::Status outcome) {
  const MutexLock lock(&mutex);
  if (!begin_wanted || work.number != last_begin) return false;
  begin_wanted = false;
  begun = std::move(outcome);
  eventfd_write(event.get(), 1);
  return true;
}

// Everything that was queued before is in the file.
void TimelineFile::Inside::End(const Work& work) {
  book.EndFile();
  file.Reset();
  const MutexLock lock(&mutex);
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
  const MutexLock lock(&mutex);
  failure = wrong;
}

TimelineFile::TimelineFile(const Topology& topology) : inside_(std::make_shared<Inside>(topology)) {
  std::thread([inside = inside_] { inside->Run(); }).detach();
}

TimelineFile::~TimelineFile() { Put({Work::kFinish}); }

void TimelineFile::Put(Work work) {
  const MutexLock lock(&inside_->mutex);
  if (work.kind == Work::kTake) {
    // A stream with a hole could not be read on.
    inside_->too_slow |= inside_->waiting_bytes > kMostWaiting;
    if (inside_->too_slow) return;
  }
  inside_->waiting_bytes += work.bytes.size();
  inside_->queue.push_back(std::move(work));
  inside_->changed.NotifyAll();
}

void TimelineFile::Begin(const std::string& path) {
  Work work = {Work::kBegin, 0, path};
  {
    const MutexLock lock(&inside_->mutex);
    work.number = ++inside_->last_begin;
    inside_->begin_wanted = true;
    inside_->begun.reset();
  }
  Put(std::move(work));
}

std::optional<absl::Status> TimelineFile::TakeBegun() {
  const MutexLock lock(&inside_->mutex);
  return std::exchange(inside_->begun, std::nullopt);
}

void TimelineFile::GiveUpBegin() {
  const MutexLock lock(&inside_->mutex);
  inside_->begin_wanted = false;
}

int TimelineFile::event_fd() const { return inside_->event.get(); }

void TimelineFile::End() {
  Work work = {Work::kEnd};
  {
    const MutexLock lock(&inside_->mutex);
    work.number = ++inside_->last_end;
    inside_->ended.reset();
  }
  Put(std::move(work));
}

std::optional<absl::Status> TimelineFile::TakeEnded() {
  const MutexLock lock(&inside_->mutex);
  return std::exchange(inside_->ended, std::nullopt);
}

void TimelineFile::Take(int host, std::string bytes, int64_t offset_ns) {
  Put({Work::kTake, host, std::move(bytes), offset_ns});
}

void TimelineFile::BeginEpoch(TimelineEpoch epoch) {
  Work work = {Work::kEpoch};
  work.epoch = std::move(epoch);
  Put(std::move(work));
}

std::string TimelineFile::Finish(double seconds) {
  const auto wait =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const Clock::time_point end = Clock::now() + wait;
  Put({Work::kFinish});
  MutexLock lock(&inside_->mutex);
  while (!inside_->finished) {
    if (inside_->changed.WaitUntil(&inside_->mutex, end) || inside_->finished) continue;
    return "the timeline could not be written in time; its end is missing";
  }
  if (!inside_->failure.empty()) return inside_->failure;
  if (inside_->too_slow) return kTooSlow;
  inside_->writer.AssertHeld();  // the thread is done with it
  return inside_->book.given_up();
}

}  // namespace hvd::cli
