// SPDX-License-Identifier: Apache-2.0
// Link A's store stream: parcels (a call's number and its message) as bytes in frames, cut into
// pieces that a sender may have under way. A large value so holds back neither beats nor a later
// abort. The same at both ends; pure.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "proto/credit_window.h"
#include "store/store_words.h"

namespace hvd {

struct StoreParcel {
  uint64_t call = 0;
  // A request on the way up, an answer on the way down. Empty, up: the caller is gone.
  StoreBytes message;
};

class ParcelSender {
 public:
  void Put(const StoreParcel& parcel);
  // Returns the bytes that may be sent now; empty when nothing is left or too much is under way.
  std::string Take(CreditWindow::TimePoint now);
  // `total`: all bytes that the other side has received.
  void Acked(uint64_t total, CreditWindow::TimePoint now) { window_.Acked(total, now); }
  size_t waiting() const { return waiting_; }

 private:
  std::deque<StoreBytes> queue_;  // frames; of the first one `sent_` bytes have gone
  size_t sent_ = 0;
  size_t waiting_ = 0;  // bytes
  CreditWindow window_;
};

class ParcelReceiver {
 public:
  void Take(std::string_view bytes);
  // True: the next one is in `call` and `message`, which is valid until the next Take.
  bool Next(uint64_t* call, std::string_view* message);
  uint64_t taken() const { return taken_; }  // bytes in total
  bool broken() const { return broken_; }    // what came is none of ours

 private:
  std::string buffer_;
  size_t at_ = 0;  // before it all has been given
  uint64_t taken_ = 0;
  bool broken_ = false;
};

}  // namespace hvd
