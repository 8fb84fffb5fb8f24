// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/staged/staged_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/device/nccl/nccl_rules.h"
#include "runtime/engine/request/local_name.h"

namespace hvd::rt {
namespace {

// For a device to let go of the tensors of a call that has failed.
constexpr std::chrono::milliseconds kLetsGo{500};

// A request of the call as the ranks agree on it; where its tensors lie only for those who launch
// it.
std::unique_ptr<Request> Announcement(const Request& asked, bool may_launch) {
  auto made = std::make_unique<Request>();
  made->name = asked.name;
  made->unnamed = asked.unnamed;
  made->signature = asked.signature;
  made->root_index = asked.root_index;
  if (may_launch) made->buffers = asked.buffers;
  return made;
}

std::vector<AskedState> BeginningOf(const StagedCall::Asked& asked) {
  std::vector<AskedState> states;
  for (const auto& request : asked.requests) {
    const bool may_launch = asked.may_launch && GoesByNccl(request->signature);
    states.push_back(IsPair(request->signature.kind) ? AskedState::kAgreedFirst
                     : may_launch                    ? AskedState::kWaits
                                                     : AskedState::kAnnounced);
  }
  return states;
}

// What NCCL has made of the announced request is the caller's.
void HandOver(Request* made, Request* asked) {
  asked->result.owned = std::exchange(made->result.owned, nullptr);
  asked->result.free_owned = made->result.free_owned;
  asked->result.shape = std::move(made->result.shape);
  asked->result.received_splits = std::move(made->result.received_splits);
  for (size_t i = 0; i < made->buffers.parts.size(); ++i) {
    RequestPart& part = asked->buffers.parts[i];
    part.owned_result = std::exchange(made->buffers.parts[i].owned_result, nullptr);
    part.result_shape = std::move(made->buffers.parts[i].result_shape);
  }
}

}  // namespace

StagedCall::StagedCall(const StagedParts& parts, Asked asked)
    : parts_(parts),
      requests_(asked.requests),
      plan_(std::move(asked.plan)),
      set_({asked.set.id, {}, asked.set.index}),
      name_(asked.requests[0]->name),
      order_(std::make_shared<CallerOrder>(parts.device)),
      memory_(parts.staging, parts.device),
      end_(parts.device, asked.requests),
      begin_{StagedStep::Kind::kBegin, 0, this, parts.inbox},
      back_{StagedStep::Kind::kBack, 0, this, parts.inbox},
      course_(BeginningOf(asked)),
      copies_(parts, &memory_, order_) {
  for (const auto& request : asked.requests) {
    const bool may_launch = asked.may_launch && GoesByNccl(request->signature);
    copies_at_once_ = copies_at_once_ || IsPair(request->signature.kind) || !may_launch;
    if (IsPair(request->signature.kind)) continue;
    StagedObserver& agreed = agreed_.emplace_back();
    agreed.step = {StagedStep::Kind::kAgreed, agreed_.size() - 1, this, parts.inbox};
    request->buffers.device.order = order_;
    announced_.push_back(Announcement(*request, may_launch));
    announced_.back()->observer = &agreed;
  }
}

absl::Status StagedCall::Prepare() {
  const GpuDevice::Scope scope(*parts_.device);
  if (absl::Status noted = order_->Note(requests_); !noted.ok()) return noted;
  return copies_at_once_ ? memory_.Take(plan_.bytes) : absl::OkStatus();
}

absl::Status StagedCall::Announce(Engine* engine) {
  absl::Status status;
  if (announced_.size() == 1) status = engine->Submit(announced_[0].get());
  if (announced_.size() > 1) status = engine->SubmitGroup(announced_);
  if (status.ok()) parts_.inbox->Push(&begin_);
  return status;
}

void StagedCall::Take(const StagedStep& step) {
  absl::Status status;
  switch (step.kind) {
    case StagedStep::Kind::kBegin:
      status = Begin();
      break;
    case StagedStep::Kind::kAgreed:
      status = Agreed(step.index);
      break;
    case StagedStep::Kind::kArrived:
      course_.NotePaid();
      course_.Tell(step.index, StageState::kHere);
      break;
    case StagedStep::Kind::kAnswered:
      return Answered(step.index);
    case StagedStep::Kind::kBack:
      course_.NotePaid();
      return end_.TellFinished();
  }
  if (!status.ok()) Lose(status);
  EndFailed();
  SubmitReady();
}

absl::Status StagedCall::Begin() {
  absl::Status status = course_.failure();
  for (size_t i = 0; i < requests_.size() && status.ok(); ++i) {
    if (course_.Hear(i, AskedEvent::kBegin)) status = CopyIn(i);
  }
  course_.NoteBegun();
  return status;
}

absl::Status StagedCall::CopyIn(size_t request) {
  if (absl::Status taken = memory_.Take(plan_.bytes); !taken.ok()) return taken;
  const std::string agreed = announced_.empty() ? "" : AgreedName(*announced_[request]);
  auto made = MakeStagedRequests(*requests_[request], plan_.tensors[request],
                                 {request, memory_.tensors(), agreed}, memory_.source());
  absl::Status status;
  for (auto& staged : made) {
    const size_t index = stages_.size();
    Stage& stage = stages_.emplace_back();
    stage.arrived = {StagedStep::Kind::kArrived, index, this, parts_.inbox};
    stage.answered.step = {StagedStep::Kind::kAnswered, index, this, parts_.inbox};
    stage.staged = std::move(staged);
    stage.staged->request.observer = &stage.answered;
    const auto fetched = status.ok() ? copies_.Fetch(*stage.staged, &stage.arrived) : status;
    course_.AddStage(request, fetched.ok() && !*fetched);
    if (fetched.ok() && *fetched) course_.Owe();
    status = fetched.status();
  }
  return status;
}

// A launched request stands on the device already; one that was only agreed on begins now, if it
// has not.
absl::Status StagedCall::Agreed(size_t request) {
  Request& announced = *announced_[request];
  if (announced.result.device_end != nullptr) {
    course_.Hear(request, AskedEvent::kLaunch);
    if (end_.is_done()) return absl::OkStatus();
    copies_.Refuse(announced.result.status);
    HandOver(&announced, requests_[request].get());
    return EndIfComplete();
  }
  if (!announced.result.status.ok()) {
    course_.Hear(request, AskedEvent::kRefuse);
    Fail(announced.result.status);
    return absl::OkStatus();
  }
  return course_.Hear(request, AskedEvent::kAgree) ? CopyIn(request) : absl::OkStatus();
}

void StagedCall::SubmitReady() {
  is_blocked_ = false;
  for (size_t i = 0; i < stages_.size(); ++i) {
    if (!course_.MaySubmit(i)) continue;
    if (absl::Status submitted = Submit(i); !submitted.ok()) return Fail(submitted);
  }
}

absl::Status StagedCall::Submit(size_t stage) {
  CallTarget target(*parts_.sets);
  if (absl::Status chosen = target.Choose(set_.id); !chosen.ok()) {
    return absl::AbortedError(kHasLeft);
  }
  absl::Status submitted = target->engine->Submit(&stages_[stage].staged->request);
  if (submitted.ok()) course_.Tell(stage, StageState::kSubmitted);
  is_blocked_ = is_blocked_ || absl::IsAlreadyExists(submitted);
  return absl::IsAlreadyExists(submitted) ? absl::OkStatus() : submitted;
}

void StagedCall::Hurry() {
  course_.Hurry();
  if (course_.AnyWaits()) {
    CallTarget target(*parts_.sets);
    const bool chosen = target.Choose(set_.id).ok();
    const auto way = chosen ? target->route->CloseForJoin() : DeviceRoute::Way::kHost;
    if (way == DeviceRoute::Way::kNccl) course_.LeaveRestToEngine();
    for (size_t i = 0; i < requests_.size() && way == DeviceRoute::Way::kHost; ++i) {
      if (!course_.Waits(i) || !course_.Hear(i, AskedEvent::kJoin)) continue;
      if (absl::Status begun = CopyIn(i); !begun.ok()) return Lose(begun);
    }
  }
  SubmitReady();
}

void StagedCall::Answered(size_t stage) {
  course_.Tell(stage, StageState::kAnswered);
  StagedRequest& staged = *stages_[stage].staged;
  const absl::Status& status = staged.request.result.status;
  if (!status.ok()) return Fail(status);
  if (!course_.failure().ok()) return;
  absl::Status returned = copies_.Return(&staged, requests_[staged.of].get());
  if (returned.ok()) returned = EndIfComplete();
  if (!returned.ok()) Lose(returned);
}

absl::Status StagedCall::EndIfComplete() {
  if (end_.is_done() || !course_.IsComplete()) return absl::OkStatus();
  auto event = copies_.End(announced_, &back_);
  if (!event.ok()) return event.status();
  course_.Owe();
  BeDone(copies_.refused(), *std::move(event));
  return absl::OkStatus();
}

void StagedCall::Fail(const absl::Status& why) {
  if (end_.is_done() || !course_.failure().ok()) return;
  course_.Fail(why, StagedCourse::Clock::now() + kLetsGo);
  EndFailed();
}

// A copy that is still to come reads what the caller may free once the call is done. But a stream
// that stands still, perhaps for the same reason, must not keep the news from its caller.
void StagedCall::EndFailed() {
  if (end_.is_done()) return;
  const bool may_end =
      course_.MayEnd(StagedCourse::Clock::now(), [this] { return parts_.device->is_idle(); });
  if (may_end) BeDone(course_.failure(), {});
}

// This rank cannot do its part, so nobody can go on.
void StagedCall::Lose(const absl::Status& why) {
  if (end_.is_done() || !course_.failure().ok()) return;
  course_.Lose();
  std::string text = absl::StrCat("GPU ", parts_.device->index(), ": ", why.message());
  CallTarget target(*parts_.sets);
  if (!target.Choose(set_.id).ok()) return Fail(absl::AbortedError(text));
  const int rank = target->ranks[static_cast<size_t>(target->index)];
  text = absl::StrCat("rank ", rank, " cannot go on: ", text);
  Fail(target->engine->world().board().Abort({text.c_str(), rank}));
}

void StagedCall::LookAround() {
  if (end_.is_done()) return;
  if (!course_.failure().ok()) return EndFailed();
  CallTarget target(*parts_.sets);
  if (!target.Choose(set_.id).ok()) return Fail(absl::AbortedError(kHasLeft));
  absl::Status epoch = target->engine->world().waiter().Check();
  if (!epoch.ok()) return Fail(epoch);
  if (absl::Status fine = parts_.device->Check(); !fine.ok()) Lose(fine);
}

void StagedCall::BeDone(const absl::Status& status, GpuDevice::Event event) {
  parts_.names->Give(set_.id, name_);
  end_.BeDone(status, std::move(event));
}

StagedCall::Standing StagedCall::standing() const {
  const bool done = end_.is_done();
  return {is_blocked_, done || course_.HasSubmitted(), done && !course_.failure().ok(),
          done && course_.IsQuiet()};
}

}  // namespace hvd::rt
