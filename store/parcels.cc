// SPDX-License-Identifier: Apache-2.0
#include "store/parcels.h"

#include <algorithm>

#include "proto/wire.h"
#include "store/store_limits.h"

namespace hvd {
namespace {

constexpr size_t kHeader = 4;
constexpr size_t kMostParcel = kMostStoreMessage + 64;

enum ParcelField { kCall = 1, kMessage = 2 };

std::string LittleEndian(size_t length) {
  std::string bytes;
  for (size_t i = 0; i < kHeader; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xff);
  return bytes;
}

size_t LengthAt(std::string_view bytes) {
  size_t length = 0;
  for (size_t i = 0; i < kHeader; ++i) {
    length |= static_cast<size_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  }
  return length;
}

}  // namespace

void ParcelSender::Put(const StoreParcel& parcel) {
  WireWriter words;
  words.Number(kCall, parcel.call);
  if (parcel.message.size() > 0) words.BytesAhead(kMessage, parcel.message.size());
  StoreBytes frame;
  frame.head = LittleEndian(words.bytes().size() + parcel.message.size()) + words.bytes() +
               parcel.message.head;
  frame.body = parcel.message.body;
  waiting_ += frame.size();
  queue_.push_back(std::move(frame));
}

std::string ParcelSender::Take(CreditWindow::TimePoint now) {
  const size_t room = std::min<size_t>(window_.Piece(), waiting_);
  std::string piece;
  while (piece.size() < room) {
    const StoreBytes& frame = queue_.front();
    const bool in_head = sent_ < frame.head.size();
    const std::string_view part = in_head ? std::string_view(frame.head) : *frame.body;
    const size_t at = in_head ? sent_ : sent_ - frame.head.size();
    const size_t bytes = std::min(part.size() - at, room - piece.size());
    piece.append(part.substr(at, bytes));
    sent_ += bytes;
    if (sent_ < frame.size()) continue;
    queue_.pop_front();
    sent_ = 0;
  }
  waiting_ -= piece.size();
  if (!piece.empty()) window_.Sent(piece.size(), now);
  return piece;
}

void ParcelReceiver::Take(std::string_view bytes) {
  buffer_.erase(0, at_);
  at_ = 0;
  taken_ += bytes.size();
  if (!broken_) buffer_ += bytes;
}

bool ParcelReceiver::Next(uint64_t* call, std::string_view* message) {
  const std::string_view rest = std::string_view(buffer_).substr(at_);
  if (broken_ || rest.size() < kHeader) return false;
  const size_t length = LengthAt(rest);
  broken_ = length > kMostParcel;
  if (broken_ || rest.size() < kHeader + length) return false;
  WireReader reader(rest.substr(kHeader, length));
  *call = 0;
  *message = {};
  while (reader.Next()) {
    if (reader.field() == kCall) *call = reader.number();
    if (reader.field() == kMessage) *message = reader.bytes();
  }
  at_ += kHeader + length;
  broken_ = !reader.ok();
  return !broken_;
}

}  // namespace hvd
