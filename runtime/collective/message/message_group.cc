// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/message/message_group.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/transport/unreached.h"

namespace hvd::rt {

absl::Status MessageGroup::Begin() {
  step_ += 2;
  step_ = (step_ & ~uint32_t{1}) | options_.lane;
  return options_.waiter->Check();
}

// The first error sticks for everyone on this host: a group with a broken transport has no way on.
absl::Status MessageGroup::EndEpoch(const absl::Status& cause, int peer) {
  const std::string text =
      peer < 0 ? std::string(cause.message())
               : absl::StrFormat("between rank %d and rank %d: %s", options_.ranks[options_.index],
                                 options_.ranks[peer], cause.message());
  return options_.waiter->EndEpoch(text, UnreachedBy(cause));
}

absl::Status MessageGroup::Send(Route route, const void* data, size_t bytes, Request* request) {
  const MessageTag tag = {options_.channel, route.step};
  auto sent = options_.transport->Send(options_.ranks[route.peer], tag, data, bytes);
  if (!sent.ok()) return EndEpoch(sent.status(), route.peer);
  options_.transport->notes().Sent(options_.ranks[route.peer], tag);
  *request = {*std::move(sent), false, route};
  return absl::OkStatus();
}

absl::Status MessageGroup::Receive(Route route, void* data, size_t bytes, Request* request) {
  const MessageTag tag = {options_.channel, route.step};
  auto posted = options_.transport->Receive(options_.ranks[route.peer], tag, data, bytes);
  if (!posted.ok()) return EndEpoch(posted.status(), route.peer);
  options_.transport->notes().Asked(options_.ranks[route.peer], tag);
  *request = {*std::move(posted), true, route};
  return absl::OkStatus();
}

absl::Status MessageGroup::Await(Request* request) {
  absl::StatusOr<bool> done = false;
  absl::Status waited = options_.waiter->Until([&] {
    done = request->message == nullptr ? true : request->message->Test();
    return !done.ok() || *done;
  });
  if (done.ok() && *done) Take(request);
  request->message = nullptr;
  return done.ok() ? waited : EndEpoch(done.status(), -1);
}

absl::Status MessageGroup::AwaitAll(std::vector<Request>* requests) {
  for (Request& request : *requests) {
    if (absl::Status done = Await(&request); !done.ok()) return done;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> MessageGroup::TakeIfDone(Request* request) {
  if (request->message == nullptr) return true;
  const absl::StatusOr<bool> done = request->message->Test();
  if (!done.ok()) return EndEpoch(done.status(), -1);
  if (*done) Take(request);
  return *done;
}

void MessageGroup::Take(Request* request) {
  if (request->message == nullptr) return;
  request->message = nullptr;
  options_.waiter->NoteMove();
  if (!request->receives) return;
  options_.transport->notes().Came(options_.ranks[request->route.peer],
                                   {options_.channel, request->route.step});
}

}  // namespace hvd::rt
