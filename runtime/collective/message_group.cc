#include "runtime/collective/message_group.h"

#include <utility>

#include "absl/strings/str_format.h"

namespace hvd {

absl::Status MessageGroup::Begin() {
  ++step_;
  return options_.waiter->Check();
}

// The first error sticks for everyone on this host: a group with a broken transport has no way on.
absl::Status MessageGroup::EndEpoch(const absl::Status& cause, int peer) {
  const std::string text =
      peer < 0 ? std::string(cause.message())
               : absl::StrFormat("between rank %d and rank %d: %s", options_.ranks[options_.index],
                                 options_.ranks[peer], cause.message());
  return options_.waiter->EndEpoch(text);
}

absl::Status MessageGroup::Send(int peer, const void* data, size_t bytes, Request* request) {
  auto sent =
      options_.transport->Send(options_.ranks[peer], {options_.channel, step_}, data, bytes);
  if (!sent.ok()) return EndEpoch(sent.status(), peer);
  *request = *std::move(sent);
  return absl::OkStatus();
}

absl::Status MessageGroup::Receive(int peer, void* data, size_t bytes, Request* request) {
  auto posted =
      options_.transport->Receive(options_.ranks[peer], {options_.channel, step_}, data, bytes);
  if (!posted.ok()) return EndEpoch(posted.status(), peer);
  *request = *std::move(posted);
  return absl::OkStatus();
}

absl::Status MessageGroup::Await(Request* request) {
  absl::Status waited = AwaitEither(*request, nullptr);
  request->reset();
  return waited;
}

absl::Status MessageGroup::AwaitEither(const Request& one, const Request& other) {
  absl::Status broken;
  const auto is_done = [&broken](const Request& request) {
    if (request == nullptr) return false;
    const absl::StatusOr<bool> done = request->Test();
    if (!done.ok()) broken = done.status();
    return !done.ok() || *done;
  };
  absl::Status waited = options_.waiter->Until([&] { return is_done(one) || is_done(other); });
  return broken.ok() ? waited : EndEpoch(broken, -1);
}

absl::StatusOr<bool> MessageGroup::TakeIfDone(Request* request) {
  const absl::StatusOr<bool> done = (*request)->Test();
  if (!done.ok()) return EndEpoch(done.status(), -1);
  if (*done) request->reset();
  return *done;
}

}  // namespace hvd
