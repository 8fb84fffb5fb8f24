// SPDX-License-Identifier: Apache-2.0
#include "daemon/relay/relay.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "proto/deadlines.h"

namespace hvd::daemon {
namespace {

constexpr size_t kPipeBytes = 1 << 20;
constexpr auto kGiveUp = std::chrono::seconds(3);  // a descendant does not stop saying
constexpr auto kLook = std::chrono::milliseconds(100);

std::string RankDirectory(int rank) {
  char name[32];
  snprintf(name, sizeof(name), "rank.%04d", rank);
  return name;
}

}  // namespace

Relay::Relay(RelayOptions options, OutputQueue* queue)
    : options_(std::move(options)),
      queue_(queue),
      streams_(size_t{2} * options_.slots),
      ranks_(options_.slots),
      stdin_(&loop_, [this](uint64_t bytes) { options_.on_stdin_credit(bytes); }) {
  const int timeline = OutputQueue::TimelineStream(options_.slots);
  queue_->Begin(timeline + 1, [this, timeline](int index) {
    if (index == timeline) return;  // it is not read from a pipe
    loop_.Post([this, index] { Resume(index); });
  });
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "hvdd-relay");
    loop_.Run();
  });
}

Relay::~Relay() {
  queue_->Close();
  StopReading();
}

void Relay::StopReading() {
  loop_.Quit();
  if (thread_.joinable()) thread_.join();
}

void Relay::Begin(int slot, uint64_t member) {
  loop_.Post([this, slot, member] {
    ranks_[slot] = {};
    for (const int index : {2 * slot, 2 * slot + 1}) {
      if (streams_[index].given_up) {
        former_sinks_.push_back(std::move(streams_[index].sink));
      }
      streams_[index] = {};
      streams_[index].member = member;
      queue_->Reopen(index, member);
    }
  });
}

void Relay::Adopt(int slot, WorkerPipes pipes) {
  // std::function wants copies, descriptors have one owner: they cross as numbers.
  loop_.Post([this, slot, rank = pipes.rank, in = pipes.in.Release(), out = pipes.out.Release(),
              err = pipes.err.Release(), keeps = pipes.keeps_files] {
    const bool again = !begun_files_.insert(rank).second;
    for (const int index : {2 * slot, 2 * slot + 1}) {
      streams_[index].rank = rank;
      streams_[index].keeps_file = options_.elastic && (keeps || again);
    }
    Open(2 * slot, Descriptor(out));
    Open(2 * slot + 1, Descriptor(err));
    if (in >= 0) stdin_.Add(slot, Descriptor(in));
  });
}

void Relay::Renumber(int slot, int rank) {
  loop_.Post([this, slot, rank] {
    for (const int index : {2 * slot, 2 * slot + 1}) {
      Stream& stream = streams_[index];
      if (std::exchange(stream.rank, rank) == rank || !stream.pipe.valid()) continue;
      begun_files_.insert(rank);
      if (stream.sink != nullptr) stream.sink->MoveTo(RankDirectory(rank));
    }
  });
}

void Relay::Open(int index, Descriptor pipe) {
  Stream& stream = streams_[index];
  fcntl(pipe.get(), F_SETPIPE_SZ, kPipeBytes);  // best effort: an ordinary user has a budget
  fcntl(pipe.get(), F_SETFL, O_NONBLOCK);
  stream.pipe = std::move(pipe);
  stream.opened = true;
  if (!options_.directory.empty()) {
    ++open_files_;
    stream.file_open = true;
    stream.sink = std::make_unique<FileSink>(SinkOptions(index));
  }
  loop_.Watch(stream.pipe.get(), EPOLLIN, [this, index](uint32_t) { OnReadable(index); });
}

FileSinkOptions Relay::SinkOptions(int index) {
  FileSinkOptions sink;
  sink.base = options_.directory;
  sink.directory = RankDirectory(streams_[index].rank);
  sink.name = index % 2 == 0 ? "stdout" : "stderr";
  sink.shared = options_.elastic;
  sink.appends = streams_[index].keeps_file;
  sink.on_room = [this, index] { loop_.Post([this, index] { Resume(index); }); };
  sink.on_fail = [this](std::string why) { options_.on_notice(std::move(why)); };
  sink.on_finished = [this, index, member = streams_[index].member] {
    loop_.Post([this, index, member] { FileEnded(index, member); });
  };
  return sink;
}

void Relay::SetSkipping(bool out, bool err) {
  loop_.Post([this, out, err] {
    skipping_ = {out, err};
    for (size_t index = 0; index < streams_.size(); ++index) Resume(static_cast<int>(index));
  });
}

// Output that a file has whole may be left out where hvdrun says that nobody takes it.
bool Relay::MaySkip(const Stream& stream, int index) const {
  return skipping_[index % 2] && stream.sink != nullptr && stream.sink->healthy();
}

size_t Relay::RoomFor(int index) {
  Stream& stream = streams_[index];
  size_t room = 64 << 10;
  if (stream.sink != nullptr) room = std::min(room, stream.sink->Room());
  if (options_.to_console && !MaySkip(stream, index)) room = std::min(room, queue_->Room(index));
  // An exit must be told even while the console is stopped, so what the pipe still holds is taken.
  if (ranks_[index / 2].gone)
    room = std::max(room, std::min<size_t>(ranks_[index / 2].allowance, 64 << 10));
  return room;
}

void Relay::OnReadable(int index) {
  Stream& stream = streams_[index];
  Rank& rank = ranks_[index / 2];
  const size_t room = RoomFor(index);
  if (room == 0) return Pause(index);
  char buffer[64 << 10];
  const ssize_t n = read(stream.pipe.get(), buffer, std::min(room, sizeof(buffer)));
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return End(index);
  if (rank.gone) rank.allowance -= std::min<size_t>(rank.allowance, n);
  rank.last_data = Clock::now();
  Take(index, std::string_view(buffer, n));
}

void Relay::Take(int index, std::string_view data) {
  Stream& stream = streams_[index];
  Rank& rank = ranks_[index / 2];
  (index % 2 == 0 ? rank.out_tail : rank.err_tail).Take(data);
  if (stream.sink != nullptr) stream.sink->Append(data);
  if (options_.to_console) ToConsole(index, data);
}

// `data` fits, unless lines may be left out: whole ones then are, while the queue is full.
void Relay::ToConsole(int index, std::string_view data) {
  Stream& stream = streams_[index];
  const bool may_skip = MaySkip(stream, index);
  const size_t room = queue_->Room(index);
  if (stream.skipping && (!may_skip || room > OutputQueue::kRoom / 2)) {
    // Go on with the next whole line.
    const size_t start = stream.at_line_start ? 0 : data.find('\n') + 1;
    if (stream.at_line_start || start != 0) {
      queue_->Skip(index, stream.skipped + (start != 0 ? 1 : 0));
      stream.skipping = false;
      stream.skipped = 0;
      data.remove_prefix(start);
    }
  }
  if (!stream.skipping && may_skip && data.size() > room) {
    // Up to the last line that fits; the rest of the piece is the first that is left out.
    const size_t last = data.substr(0, room).rfind('\n');
    const size_t kept = last == std::string_view::npos ? 0 : last + 1;
    queue_->Push(index, data.substr(0, kept));
    data.remove_prefix(kept);
    stream.skipping = true;
  }
  if (data.empty()) return;
  if (stream.skipping) {
    stream.skipped += std::count(data.begin(), data.end(), '\n');
  } else {
    queue_->Push(index, data);
  }
  stream.at_line_start = data.back() == '\n';
}

void Relay::Pause(int index) {
  Stream& stream = streams_[index];
  if (std::exchange(stream.reading, false)) loop_.Forget(stream.pipe.get());
  // The room may have come between the look and here; both monitors remember who asked.
  if (RoomFor(index) > 0) Resume(index);
}

void Relay::Resume(int index) {
  Stream& stream = streams_[index];
  if (stream.reading || !stream.pipe.valid()) return;
  stream.reading = true;
  loop_.Watch(stream.pipe.get(), EPOLLIN, [this, index](uint32_t) { OnReadable(index); });
}

void Relay::End(int index) {
  Stream& stream = streams_[index];
  if (!stream.pipe.valid()) return;
  loop_.Forget(stream.pipe.get());
  stream.pipe.Reset();
  if (stream.skipping) queue_->Skip(index, stream.skipped + (stream.at_line_start ? 0 : 1));
  if (stream.file_open) {
    stream.sink->Close();
    stream.file_closed = Clock::now();
    AwaitFile(index, stream.member);
  } else {
    queue_->PushEnd(index, stream.file_lost);
  }
  CheckDrained(index / 2);
}

void Relay::AwaitFile(int index, uint64_t member) {
  Stream& stream = streams_[index];
  if (stream.member != member || !stream.file_open) return;
  const TimePoint until = stream.file_closed + file_patience_;
  if (Clock::now() < until) {
    loop_.At(until, [this, index, member] { AwaitFile(index, member); });
    return;
  }
  stream.file_lost = Printable(stream.sink->path()) +
                     ": its file system does not answer; the end of this file is missing";
  options_.on_notice(stream.file_lost);
  stream.given_up = true;
  FileEnded(index, member);
}

void Relay::Hurry() {
  loop_.Post([this] {
    file_patience_ = kStoppedFilePatience;
    for (size_t index = 0; index < streams_.size(); ++index) {
      if (!streams_[index].pipe.valid()) {
        AwaitFile(static_cast<int>(index), streams_[index].member);
      }
    }
  });
}

// The stream's end is told when its file has everything, or is given up.
void Relay::FileEnded(int index, uint64_t member) {
  if (streams_[index].member != member) return;  // it has been given up
  if (!std::exchange(streams_[index].file_open, false)) return;
  Stream& stream = streams_[index];
  if (!stream.given_up) stream.file_lost = stream.sink->failure();
  // One that has failed may be over before its stream is.
  if (!stream.pipe.valid()) queue_->PushEnd(index, stream.file_lost);
  if (--open_files_ == 0) options_.on_files_ended();
  if (options_.elastic) CheckDrained(index / 2);
}

void Relay::RankGone(int slot) {
  loop_.Post([this, slot] {
    Rank& rank = ranks_[slot];
    rank.gone = true;
    rank.allowance = 4 * kPipeBytes;
    rank.last_data = Clock::now();
    rank.give_up = rank.last_data + kGiveUp;
    stdin_.Remove(slot);
    Resume(2 * slot);
    Resume(2 * slot + 1);
    CheckDrained(slot);
  });
}

void Relay::CheckDrained(int slot) {
  Rank& rank = ranks_[slot];
  if (!rank.gone || rank.drained) return;
  const size_t out = size_t{2} * slot;
  const bool both_ended = !streams_[out].pipe.valid() && !streams_[out + 1].pipe.valid();
  const TimePoint now = Clock::now();
  if (!both_ended && now < rank.last_data + kPipePatience && now < rank.give_up) {
    loop_.At(now + kLook, [this, slot] { CheckDrained(slot); });
    return;
  }
  if (!options_.elastic) {
    TellDrained(slot);
    return EndBoth(slot);
  }
  // Whoever gets the slot next must find nothing under way.
  if (!std::exchange(rank.ended, true)) EndBoth(slot);
  if (!rank.drained && !streams_[out].file_open && !streams_[out + 1].file_open) TellDrained(slot);
}

// In an elastic job also of a worker that never had pipes: each member's streams end.
void Relay::EndBoth(int slot) {
  for (const int index : {2 * slot, 2 * slot + 1}) {
    if (options_.elastic && !streams_[index].opened) queue_->PushEnd(index);
    End(index);
  }
}

void Relay::TellDrained(int slot) {
  Rank& rank = ranks_[slot];
  rank.drained = true;
  std::vector<std::string> lines = rank.err_tail.Lines();
  if (lines.empty()) lines = rank.out_tail.Lines();
  options_.on_drained(slot, std::move(lines));
}

void Relay::FeedStdin(std::string data, bool end) {
  loop_.Post([this, data = std::move(data), end] { stdin_.Feed(data, end); });
}

void Relay::FinishFiles(TimePoint deadline) {
  StopReading();  // from here on the streams are the caller's
  for (Stream& stream : streams_) {
    if (stream.sink != nullptr) stream.sink->Finish(deadline);  // what is late has been told
  }
  for (const std::unique_ptr<FileSink>& sink : former_sinks_) sink->Finish(deadline);
}

}  // namespace hvd::daemon
