// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cuda/nccl_work.h"

#include <algorithm>
#include <cstring>

#include "tests/support/cuda/nccl_arithmetic.h"

namespace hvd::rt {
namespace {

constexpr size_t kPieceBytes = 32 << 10;

// A piece of a work: elements [at, at + count).
struct Piece {
  size_t at = 0;
  size_t count = 0;
};

std::vector<Piece> Cut(const NcclWork& work) {
  const size_t most = kPieceBytes / NcclBytesOf(work.type);
  std::vector<Piece> pieces;
  for (size_t at = 0; at < work.count; at += most) {
    pieces.push_back({at, std::min(most, work.count - at)});
  }
  return pieces;
}

class PieceRun {
 public:
  PieceRun(const NcclWork& work, const Piece& piece, NcclMeeting* meeting)
      : work_(work), piece_(piece), meeting_(*meeting), size_(NcclBytesOf(work.type)) {}

  // The bytes of this piece that rank `to` is to have.
  std::vector<char> Mine(int to) const {
    size_t at = piece_.at;
    if (work_.kind == NcclKind::kReduceScatter) at += static_cast<size_t>(to) * work_.count;
    std::vector<char> bytes(work_.from + at * size_, work_.from + (at + piece_.count) * size_);
    if (work_.scale != 1) NcclScale(work_.type, piece_.count, work_.scale, false, bytes.data());
    return bytes;
  }
  bool Gives(int to) const {
    if (to == meeting_.rank()) return false;
    if (work_.kind == NcclKind::kBroadcast) return meeting_.rank() == work_.other;
    return work_.kind != NcclKind::kReduce || to == work_.other;
  }
  bool Give() const {
    for (int to = 0; to < meeting_.ranks(); ++to) {
      if (!Gives(to)) continue;
      const std::vector<char> bytes = Mine(to);
      if (!meeting_.Send(to, bytes.data(), bytes.size())) return false;
    }
    return true;
  }

  // Reduces the pieces of all ranks in their order, so that every rank comes to the same bits.
  bool Reduce() const {
    std::vector<char> sum, other(piece_.count * size_);
    for (int rank = 0; rank < meeting_.ranks(); ++rank) {
      const bool own = rank == meeting_.rank();
      if (own) other = Mine(rank);
      if (!own && !meeting_.Receive(rank, other.data(), other.size())) return false;
      if (rank == 0) sum = other;
      if (rank > 0) NcclCombine(work_.type, work_.op, piece_.count, other.data(), sum.data());
    }
    const bool mean = work_.op == kNcclAvg;
    if (mean) NcclScale(work_.type, piece_.count, meeting_.ranks(), true, sum.data());
    memcpy(work_.to + piece_.at * size_, sum.data(), sum.size());
    return true;
  }
  bool Gather() const {
    for (int rank = 0; rank < meeting_.ranks(); ++rank) {
      char* place = work_.to + (static_cast<size_t>(rank) * work_.count + piece_.at) * size_;
      const bool own = rank == meeting_.rank();
      if (own) memmove(place, work_.from + piece_.at * size_, piece_.count * size_);
      if (!own && !meeting_.Receive(rank, place, piece_.count * size_)) return false;
    }
    return true;
  }
  bool TakeRoots() const {
    char* place = work_.to + piece_.at * size_;
    if (meeting_.rank() != work_.other) {
      return meeting_.Receive(work_.other, place, piece_.count * size_);
    }
    memmove(place, work_.from + piece_.at * size_, piece_.count * size_);
    return true;
  }

  bool SendOne() const {
    return meeting_.Send(work_.other, work_.from + piece_.at * size_, piece_.count * size_);
  }
  bool ReceiveOne() const {
    return meeting_.Receive(work_.other, work_.to + piece_.at * size_, piece_.count * size_);
  }

 private:
  const NcclWork& work_;
  const Piece& piece_;
  NcclMeeting& meeting_;
  const size_t size_;
};

bool RunPiece(const NcclWork& work, const Piece& piece, NcclMeeting* meeting) {
  const PieceRun run(work, piece, meeting);
  if (!run.Give()) return false;
  switch (work.kind) {
    case NcclKind::kAllGather:
      return run.Gather();
    case NcclKind::kBroadcast:
      return run.TakeRoots();
    case NcclKind::kReduce:
      return meeting->rank() != work.other || run.Reduce();
    default:
      return run.Reduce();
  }
}

bool IsPair(const NcclWork& work) {
  return work.kind == NcclKind::kSend || work.kind == NcclKind::kReceive;
}

// Sends and receives of a group are one: the first piece of all, then the second.
bool RunPairs(const std::vector<NcclWork>& group, NcclMeeting* meeting) {
  bool more = true;
  for (size_t round = 0; more; ++round) {
    more = false;
    for (const NcclKind kind : {NcclKind::kSend, NcclKind::kReceive}) {
      for (const NcclWork& work : group) {
        const std::vector<Piece> pieces = work.kind == kind ? Cut(work) : std::vector<Piece>();
        if (round >= pieces.size()) continue;
        more = true;
        const PieceRun run(work, pieces[round], meeting);
        if (!(kind == NcclKind::kSend ? run.SendOne() : run.ReceiveOne())) return false;
      }
    }
  }
  return true;
}

}  // namespace

bool RunNcclGroup(const std::vector<NcclWork>& group, NcclMeeting* meeting) {
  for (const NcclWork& work : group) {
    if (IsPair(work)) continue;
    for (const Piece& piece : Cut(work)) {
      if (!RunPiece(work, piece, meeting)) return false;
    }
  }
  return RunPairs(group, meeting);
}

}  // namespace hvd::rt
