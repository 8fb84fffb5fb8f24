// SPDX-License-Identifier: Apache-2.0
#include "daemon/shim/shim_channel.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <utility>

#include "base/descriptor_mail.h"

namespace hvd::daemon {
namespace {

template <class Record>
ShimChannel::Got ReceiveRecord(int socket, Record* record, std::vector<Descriptor>* fds) {
  fds->clear();
  const ssize_t n = ReceiveMail(socket, record, sizeof(*record), fds);
  if (n == static_cast<ssize_t>(sizeof(*record))) return ShimChannel::Got::kRecord;
  if (n < 0 && errno == EAGAIN) return ShimChannel::Got::kNothing;
  return ShimChannel::Got::kEnd;
}

}  // namespace

void ShimChannel::BoundAsks(std::chrono::milliseconds patience) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(patience);
  const timeval bound{seconds.count(), std::chrono::microseconds(patience - seconds).count()};
  setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof(bound));
}

bool ShimChannel::Ask(const ShimRequest& request, const std::vector<int>& fds) {
  return SendMail(socket_.get(), {&request, sizeof(request)}, fds, 0) > 0;
}

void ShimChannel::Tell(const ShimReport& report, Descriptor fd) {
  backlog_.push_back({report, std::move(fd)});
  Flush();
}

void ShimChannel::Flush() {
  while (!backlog_.empty()) {
    const Waiting& next = backlog_.front();
    std::vector<int> fds;
    if (next.fd.valid()) fds.push_back(next.fd.get());
    const Mail mail{&next.report, sizeof(next.report)};
    if (SendMail(socket_.get(), mail, fds, MSG_DONTWAIT) < 0 && errno == EAGAIN) return;
    // Any other failure means that hvdd is gone, which its end of file tells better.
    backlog_.pop_front();
  }
}

ShimChannel::Got ShimChannel::Receive(ShimRequest* request, std::vector<Descriptor>* fds) {
  return ReceiveRecord(socket_.get(), request, fds);
}

ShimChannel::Got ShimChannel::Receive(ShimReport* report, std::vector<Descriptor>* fds) {
  return ReceiveRecord(socket_.get(), report, fds);
}

}  // namespace hvd::daemon
