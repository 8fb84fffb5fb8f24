// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/message/owner.h"

#include "absl/container/inlined_vector.h"
#include "runtime/collective/slices.h"

namespace hvd::rt {
namespace {

using Request = MessageGroup::Request;

// Whether the other ranks want an owner's sum too, or nobody else does.
enum class Sums { kForAll, kOwnersOnly };

// Everyone owns its slice; without slices all own everything, and there is nothing to return.
class OwnerRun : public MessageRun {
 public:
  OwnerRun(MessageGroup* group, const MessageReduce& reduce, std::vector<Extent> slices, Sums sums)
      : group_(group),
        step_(group->step()),
        reduce_(reduce),
        slices_(std::move(slices)),
        sums_(sums),
        room_bytes_(CountOf(group->rank()) * reduce.width),
        rooms_(new std::byte[room_bytes_ * group->size()]),
        receives_(group->size()),
        sends_(group->size()),
        results_(group->size()),
        returns_(group->size()) {}

 protected:
  absl::StatusOr<bool> Advance() override {
    if (phase_ == Phase::kNew) {
      phase_ = Phase::kCollecting;
      if (absl::Status begun = Begin(); !begun.ok()) return begun;
      return true;
    }
    if (phase_ == Phase::kCollecting) {
      const absl::StatusOr<bool> all = TakeAll(&receives_);
      if (!all.ok() || !*all) return all;
      // In place, the sum overwrites what was sent of the own slice: with all owning all, anything.
      const absl::StatusOr<bool> sent = all_own_all() ? TakeAll(&sends_) : true;
      if (!sent.ok() || !*sent) return sent;
      Sum();
      phase_ = Phase::kReturning;
      if (absl::Status returned = Return(); !returned.ok()) return returned;
      return true;
    }
    for (std::vector<Request>* requests : {&sends_, &results_, &returns_}) {
      const absl::StatusOr<bool> all = TakeAll(requests);
      if (!all.ok() || !*all) return all;
    }
    phase_ = Phase::kDone;
    return true;
  }
  bool IsComplete() const override { return phase_ == Phase::kDone; }

 private:
  enum class Phase { kNew, kCollecting, kReturning, kDone };

  bool all_own_all() const { return slices_.empty(); }
  size_t BeginOf(int owner) const { return all_own_all() ? 0 : slices_[owner].begin; }
  size_t CountOf(int owner) const { return all_own_all() ? reduce_.count : slices_[owner].count; }
  std::byte* ResultOf(int owner) const {
    const size_t begin = sums_ == Sums::kForAll ? BeginOf(owner) : 0;
    return reduce_.output + begin * reduce_.width;
  }
  // Each begins with its right neighbour, so that not all talk to the same rank at once.
  template <class Talk>
  absl::Status WithEveryPeer(const Talk& talk) {
    for (int i = 1; i < group_->size(); ++i) {
      const int peer = (group_->rank() + i) % group_->size();
      if (absl::Status ok = talk(peer); !ok.ok()) return ok;
    }
    return absl::OkStatus();
  }

  absl::Status Begin() {
    return WithEveryPeer([&](int peer) {
      absl::Status ok = group_->Receive({peer, step_}, rooms_.get() + peer * room_bytes_,
                                        room_bytes_, &receives_[peer]);
      if (!ok.ok()) return ok;
      return group_->Send({peer, step_}, reduce_.input + BeginOf(peer) * reduce_.width,
                          CountOf(peer) * reduce_.width, &sends_[peer]);
    });
  }

  void Sum() {
    const int me = group_->rank();
    absl::InlinedVector<const void*, 16> sources(group_->size());
    for (int peer = 0; peer < group_->size(); ++peer) {
      sources[peer] = peer == me ? reduce_.input + BeginOf(me) * reduce_.width
                                 : rooms_.get() + peer * room_bytes_;
    }
    Combine(reduce_, {sources}, ResultOf(me), CountOf(me), SumKind::kLast);
  }

  // In place, a result overwrites what this rank sent to its owner: the owner has it by then.
  absl::Status Return() {
    if (all_own_all() || sums_ == Sums::kOwnersOnly) return absl::OkStatus();
    const int me = group_->rank();
    return WithEveryPeer([&](int peer) {
      absl::Status ok = group_->Receive({peer, step_}, ResultOf(peer),
                                        CountOf(peer) * reduce_.width, &results_[peer]);
      if (!ok.ok()) return ok;
      return group_->Send({peer, step_}, ResultOf(me), CountOf(me) * reduce_.width,
                          &returns_[peer]);
    });
  }

  absl::StatusOr<bool> TakeAll(std::vector<Request>* requests) {
    for (Request& request : *requests) {
      const absl::StatusOr<bool> done = group_->TakeIfDone(&request);
      if (!done.ok() || !*done) return done;
    }
    return true;
  }

  MessageGroup* const group_;
  const uint32_t step_;
  const MessageReduce reduce_;
  const std::vector<Extent> slices_;  // by owner; empty: all own all
  const Sums sums_;
  const size_t room_bytes_;
  const std::unique_ptr<std::byte[]> rooms_;  // by peer
  std::vector<Request> receives_, sends_, results_, returns_;
  Phase phase_ = Phase::kNew;
};

}  // namespace

std::unique_ptr<MessageRun> OwnerAllreduce(MessageGroup* group, const MessageReduce& reduce) {
  const std::vector<size_t> bounds = EvenSlices(reduce.count, group->size());
  std::vector<Extent> slices;
  for (int i = 0; i < group->size(); ++i) slices.push_back({bounds[i], bounds[i + 1] - bounds[i]});
  return std::make_unique<OwnerRun>(group, reduce, std::move(slices), Sums::kForAll);
}

std::unique_ptr<MessageRun> OwnerReduceScatter(MessageGroup* group, const MessageReduce& reduce,
                                               std::vector<Extent> slices) {
  return std::make_unique<OwnerRun>(group, reduce, std::move(slices), Sums::kOwnersOnly);
}

std::unique_ptr<MessageRun> OneShotAllreduce(MessageGroup* group, const MessageReduce& reduce) {
  return std::make_unique<OwnerRun>(group, reduce, std::vector<Extent>(), Sums::kForAll);
}

}  // namespace hvd::rt
