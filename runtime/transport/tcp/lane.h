// SPDX-License-Identifier: Apache-2.0
// One proven connection to a peer: frames and what follows them, out and in. Guarded by the
// transport's mutex.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/transport/tcp/mailbox.h"
#include "runtime/transport/tcp/poller.h"

namespace hvd::rt {

class Lane;

// The receiver of all that comes over a lane.
class LaneOwner {
 public:
  virtual ~LaneOwner() = default;
  virtual absl::StatusOr<Landing> OnFrame(const Frame& frame) = 0;
  virtual void OnLanded(const Landing& landing) = 0;
  virtual void OnBroken(Lane* lane, const absl::Status& why) = 0;
};

class Lane : public Watched {
 public:
  // How much is read ahead of what is asked for: of many small messages much, so that one call of
  // the system brings several; of large ones a frame, so that their bytes go straight to their
  // place.
  enum class ReadsAhead { kMuch, kOneFrame };
  // Frames that are put in before the connection is there go out when it is.
  Lane(LaneOwner* owner, ReadsAhead ahead)
      : owner_(owner), room_(ahead == ReadsAhead::kMuch ? kRoomBytes : sizeof(Frame)) {}

  void Attach(Socket socket, Poller* poller);
  bool attached() const { return socket_.open(); }

  void Put(const Frame& frame, const std::shared_ptr<Outbound>& message);
  size_t queued_bytes() const { return queued_bytes_; }
  // Sends what the system takes in one turn; the rest goes when it takes more.
  void Flush();
  void OnReady(uint32_t events) override;

  // Takes back what has not begun to go out of a message that nobody sends any more. False: it has
  // begun.
  bool Forget(const std::shared_ptr<Outbound>& message);
  // All that is on its way, in or out, ends with this; the connection is closed.
  void Fail(const absl::Status& status);
  void Close();
  // Sends a last word if it can at once, and takes what has come: what closes with something unread
  // would tear away what is still on its way out.
  void SayGoodbye();

 private:
  struct Item {
    Frame frame;
    std::shared_ptr<Outbound> message;
    size_t written = 0;  // of the frame and of what follows
    size_t size() const { return sizeof(Frame) + (message == nullptr ? 0 : frame.bytes); }
  };
  static constexpr size_t kRoomBytes = size_t{16} << 10;

  absl::StatusOr<size_t> SendQueue();
  void Advance(size_t written);
  absl::StatusOr<size_t> ReadSome();
  absl::Status TakeFrames();
  absl::Status BeginLanding(const Frame& frame, size_t* at);
  void EndLanding();
  void WatchWriting(bool watch);

  LaneOwner* const owner_;
  Socket socket_;
  Poller* poller_ = nullptr;
  // Out.
  std::deque<Item> queue_;
  size_t queued_bytes_ = 0;
  bool blocked_ = false;          // waits for the system to take more
  bool watches_writing_ = false;  // the poller tells of it
  // In.
  Landing landing_;    // what comes now; to: null between frames
  size_t landed_ = 0;  // of it
  std::vector<std::byte> room_;
  size_t in_room_ = 0;
};

}  // namespace hvd::rt
