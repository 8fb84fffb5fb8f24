// SPDX-License-Identifier: Apache-2.0
#include "daemon/relay/output_queue.h"

#include <algorithm>
#include <utility>

namespace hvd::daemon {
void OutputQueue::Begin(int streams, std::function<void(int)> on_room) {
  const MutexLock lock(&mutex_);
  streams_.resize(streams);
  on_room_ = std::move(on_room);
}

void OutputQueue::Reopen(int stream, uint64_t member) {
  const MutexLock lock(&mutex_);
  Stream& begun = streams_[stream];
  if (begun.has_work()) former_.push_back({stream, std::move(begun)});
  begun = {};
  begun.member = member;
}

size_t OutputQueue::Room(int stream) const {
  const MutexLock lock(&mutex_);
  Stream& asked = streams_[stream];
  const size_t room = asked.data.size() < kRoom ? kRoom - asked.data.size() : 0;
  if (room == 0) asked.wants_room = true;
  return room;
}

void OutputQueue::Push(int stream, std::string_view data) {
  const MutexLock lock(&mutex_);
  streams_[stream].data += data;
  changed_.NotifyAll();
}

void OutputQueue::Skip(int stream, uint64_t lines) {
  const MutexLock lock(&mutex_);
  streams_[stream].skipped_lines += lines;
  streams_[stream].marked_at = streams_[stream].data.size();
  changed_.NotifyAll();
}

void OutputQueue::EndRecording(int stream) {
  const MutexLock lock(&mutex_);
  streams_[stream].recording_ended = true;
  streams_[stream].marked_at = streams_[stream].data.size();
  changed_.NotifyAll();
}

void OutputQueue::PushEnd(int stream, std::string file_lost) {
  const MutexLock lock(&mutex_);
  streams_[stream].ended = true;
  streams_[stream].file_lost = std::move(file_lost);
  changed_.NotifyAll();
}

bool OutputQueue::Take(OutputPiece* piece) {
  int with_room = -1;
  std::function<void(int)> on_room;
  {
    MutexLock lock(&mutex_);
    while (!closed_) {
      if (CutFormer(piece)) return true;
      const int next = NextToSend();
      if (next >= 0) {
        if (Cut(next, &streams_[next], piece)) with_room = next;
        turn_ = next + 1;
        break;
      }
      changed_.Wait(&mutex_);
    }
    if (closed_) return false;
    on_room = on_room_;
  }
  if (with_room >= 0) on_room(with_room);
  return true;
}

int OutputQueue::NextWithWork() const {
  for (size_t i = 0; i < streams_.size(); ++i) {
    const size_t index = (turn_ + i) % streams_.size();
    if (streams_[index].has_work()) return static_cast<int>(index);
  }
  return -1;
}

int OutputQueue::NextToSend() const {
  const int next = NextWithWork();
  return next >= 0 && MaySend(streams_[next]) ? next : -1;
}

bool OutputQueue::MaySend(const Stream& stream) const {
  return stream.data.empty() || window_.Piece() > 0;
}

bool OutputQueue::CutFormer(OutputPiece* piece) {
  if (former_.empty() || !MaySend(former_.front().stream)) return false;
  Former& first = former_.front();
  Cut(first.index, &first.stream, piece);
  if (!first.stream.has_work()) former_.pop_front();
  return true;
}

// Returns whether the reader of this stream waits for the room that this made.
bool OutputQueue::Cut(int index, Stream* from, OutputPiece* piece) {
  Stream& stream = *from;
  const size_t whole = stream.marked() ? stream.marked_at : stream.data.size();
  const size_t size = std::min(whole, static_cast<size_t>(window_.Piece()));
  *piece = {index, stream.member, stream.data.substr(0, size)};
  stream.data.erase(0, size);
  window_.Sent(size, CreditWindow::Clock::now());
  stream.marked_at -= std::min(size, stream.marked_at);
  if (stream.marked_at == 0) {
    piece->skipped_lines = std::exchange(stream.skipped_lines, 0);
    piece->recording_ended = std::exchange(stream.recording_ended, false);
  }
  if (stream.data.empty() && stream.ended) {
    piece->end = stream.end_sent = true;
    piece->file_lost = std::move(stream.file_lost);
  }
  return stream.data.size() <= kRoom / 2 && std::exchange(stream.wants_room, false);
}

void OutputQueue::Acked(uint64_t total) {
  const MutexLock lock(&mutex_);
  window_.Acked(total, CreditWindow::Clock::now());
  changed_.NotifyAll();
}

void OutputQueue::Close() {
  const MutexLock lock(&mutex_);
  closed_ = true;
  changed_.NotifyAll();
}

}  // namespace hvd::daemon
