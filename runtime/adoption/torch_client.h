// SPDX-License-Identifier: Apache-2.0
// The part of torch.distributed's TCPStore protocol that hvd needs, as PyTorch 2 speaks it: a byte
// for the question, then numbers of 8 bytes in the host's order, texts behind their length.
// One thread at a time. Errors speak of the server as "it".
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/descriptor.h"

namespace hvd::rt {

class TorchClient {
 public:
  // Waits for a server that is not there yet, until the time has come.
  // InvalidArgument: `host` has no address. Unavailable: the system's words.
  static absl::StatusOr<TorchClient> Connect(const std::string& host, int port, TimePoint until);

  absl::Status Set(absl::string_view key, absl::string_view value, TimePoint until);
  // Waits until all of the keys have values. DeadlineExceeded: nothing but GiveUp may follow.
  absl::Status Wait(const std::vector<std::string>& keys, TimePoint until);
  // Takes the last Wait back.
  absl::Status GiveUp(TimePoint until);
  absl::StatusOr<bool> Has(const std::string& key, TimePoint until);
  // The values, by key. Each has been waited for.
  absl::StatusOr<std::vector<std::string>> Get(const std::vector<std::string>& keys,
                                               TimePoint until);

 private:
  explicit TorchClient(Descriptor socket) : socket_(std::move(socket)) {}
  absl::StatusOr<std::string> Receive(size_t bytes, TimePoint until);
  absl::StatusOr<unsigned char> ReceiveByte(TimePoint until);
  absl::StatusOr<std::string> ReceiveValue(TimePoint until);

  Descriptor socket_;
};

}  // namespace hvd::rt
