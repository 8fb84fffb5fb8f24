// SPDX-License-Identifier: Apache-2.0
#include "cli/driver/store.h"

#include <chrono>

namespace hvd::cli {
namespace {

CreditWindow::TimePoint TimePointOf(double seconds) {
  return CreditWindow::TimePoint(std::chrono::duration_cast<CreditWindow::Clock::duration>(
      std::chrono::duration<double>(seconds)));
}

}  // namespace

void DriverStore::Take(int host, const v1::StoreChunk& chunk, double now) {
  Port& port = ports_[host];
  port.receiver.Take(chunk.data());
  uint64_t call = 0;
  std::string_view message;
  while (port.receiver.Next(&call, &message)) Ask({host, call}, message, now);
  port.sender.Acked(chunk.taken(), TimePointOf(now));
  touched_.insert(host);
  PumpTouched(now);
}

void DriverStore::Ask(StoreCaller from, std::string_view message, double now) {
  if (message.empty()) return book_.Forget(from);
  StoreRequest request;
  if (!DecodeStoreRequest(message, &request)) request = StoreRequest();  // which is refused
  Give(book_.Ask(from, request, now));
}

void DriverStore::Give(const std::vector<StoreBook::Reply>& replies) {
  for (const StoreBook::Reply& reply : replies) {
    StoreParcel parcel;
    parcel.call = reply.to.call;
    parcel.message = EncodeStoreAnswer(reply.answer);
    ports_[reply.to.host].sender.Put(parcel);
    touched_.insert(reply.to.host);
  }
}

void DriverStore::Tick(double now) {
  Give(book_.Tick(now));
  PumpTouched(now);
}

void DriverStore::PumpTouched(double now) {
  for (const int host : touched_) Pump(host, now);
  touched_.clear();
}

// Sends what may be sent; what has come is acknowledged with it, or alone.
void DriverStore::Pump(int host, double now) {
  Port& port = ports_[host];
  bool sent = true;
  while (sent) {
    v1::StoreChunk chunk;
    chunk.set_data(port.sender.Take(TimePointOf(now)));
    chunk.set_taken(port.receiver.taken());
    sent = !chunk.data().empty();
    if (sent || port.told_taken != chunk.taken()) send_(host, chunk);
    port.told_taken = chunk.taken();
  }
}

}  // namespace hvd::cli
