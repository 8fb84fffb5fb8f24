// SPDX-License-Identifier: Apache-2.0
// Two ranks of one host: a piece of the host's memory that they share, with a lane in each
// direction. The first of the two that needs it takes it (PairPlaces).
#pragma once

#include <atomic>
#include <deque>
#include <memory>

#include "absl/types/span.h"
#include "runtime/engine/pairs/pair_link.h"
#include "runtime/session/shared_space.h"

namespace hvd::rt {

// Where the pieces of a set's pairs are, in the set's own region; 0: nobody has needed it.
class PairPlaces {
 public:
  PairPlaces(void* memory, int size)
      : at_(static_cast<std::atomic<uint64_t>*>(memory)), size_(size) {}
  static size_t Bytes(int size) { return sizeof(std::atomic<uint64_t>) * size * size; }

  std::atomic<uint64_t>& Of(int a, int b) const {
    return at_[static_cast<ptrdiff_t>(a < b ? a : b) * size_ + (a < b ? b : a)];
  }
  absl::Span<std::atomic<uint64_t>> all() const {
    return {at_, static_cast<size_t>(size_) * static_cast<size_t>(size_)};
  }

 private:
  std::atomic<uint64_t>* const at_;
  const int size_;
};

struct HostPairPlace {
  SharedSpace* space = nullptr;
  PairPlaces places;
  int local_rank = 0;  // in the set, as the peer's
  int peer = 0;
};

class HostPairLink : public PairLink {
 public:
  static absl::StatusOr<std::unique_ptr<PairLink>> Make(const HostPairPlace& place);
  // All pieces, which no rank uses any more.
  static void GiveBack(const PairPlaces& places, SharedSpace* space);

  absl::StatusOr<bool> Send(const PairNotice& notice) override;
  uint64_t gone() const override { return sent_; }
  absl::StatusOr<bool> Receive(PairNotice* notice) override;
  absl::Status BeginSend(Parcel* parcel) override;
  absl::Status BeginReceive(Parcel* parcel) override;
  absl::StatusOr<bool> Step(std::vector<Parcel*>* done) override;

 private:
  // One direction: one rank writes, the other reads. Everything counts up.
  struct Lane {
    static constexpr uint64_t kNotices = 64;
    static constexpr uint64_t kPieces = 4;
    static constexpr size_t kPieceBytes = size_t{128} << 10;
    struct Piece {
      uint32_t parcel;
      uint32_t bytes;
    };
    alignas(128) std::atomic<uint64_t> notices_put;
    std::atomic<uint64_t> pieces_put;
    alignas(128) std::atomic<uint64_t> notices_taken;
    std::atomic<uint64_t> pieces_taken;
    alignas(128) Piece heads[kPieces];
    alignas(64) PairNotice notices[kNotices];
    alignas(4096) std::byte pieces[kPieces][kPieceBytes];
  };

  HostPairLink(std::shared_ptr<std::byte> memory, bool first);
  bool PutPiece(std::vector<Parcel*>* done);
  absl::StatusOr<bool> TakePiece(std::vector<Parcel*>* done);

  const std::shared_ptr<std::byte> memory_;
  Lane& out_;
  Lane& in_;
  uint64_t sent_ = 0;
  std::deque<Parcel*> outgoing_, incoming_;  // in the order in which they began
};

}  // namespace hvd::rt
