// SPDX-License-Identifier: Apache-2.0
#include "store/parcels.h"

#include <catch2/catch.hpp>
#include <chrono>

#include "hvd/v1/link_a.pb.h"
#include "store/store_limits.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;

StoreParcel Parcel(uint64_t call, std::string head, size_t body) {
  StoreParcel parcel;
  parcel.call = call;
  parcel.message.head = std::move(head);
  if (body > 0) parcel.message.body = std::make_shared<const std::string>(body, 'b');
  return parcel;
}

struct Came {
  uint64_t call = 0;
  std::string message;
};

// Carries everything over, a millisecond a piece, and acknowledges it at once.
std::vector<Came> Carry(ParcelSender* sender, ParcelReceiver* receiver) {
  std::vector<Came> all;
  CreditWindow::TimePoint now{};
  while (sender->waiting() > 0) {
    const std::string piece = sender->Take(now);
    REQUIRE_FALSE(piece.empty());
    receiver->Take(piece);
    Came came;
    std::string_view message;
    while (receiver->Next(&came.call, &message)) {
      came.message = std::string(message);
      all.push_back(came);
    }
    now += milliseconds(1);
    sender->Acked(receiver->taken(), now);
  }
  return all;
}

TEST_CASE("parcels come as they were put, small, large and empty ones") {
  ParcelSender sender;
  ParcelReceiver receiver;
  sender.Put(Parcel(1, "small", 0));
  sender.Put(Parcel(uint64_t{1} << 40, "head", 3 << 20));
  sender.Put(Parcel(2, "", 0));
  sender.Put(Parcel(3, "", 1));
  const std::vector<Came> came = Carry(&sender, &receiver);
  REQUIRE(came.size() == 4);
  CHECK(came[0].call == 1);
  CHECK(came[0].message == "small");
  CHECK(came[1].call == uint64_t{1} << 40);
  CHECK(came[1].message == "head" + std::string(3 << 20, 'b'));
  CHECK(came[2].call == 2);
  CHECK(came[2].message.empty());
  CHECK(came[3].message == "b");
}

TEST_CASE("a parcel in its frame is what link A's words say") {
  ParcelSender sender;
  sender.Put(Parcel(7, "what", 0));
  const std::string piece = sender.Take({});
  v1::StoreParcel parcel;
  REQUIRE(parcel.ParseFromString(piece.substr(4)));
  CHECK(static_cast<size_t>(piece[0]) == piece.size() - 4);
  CHECK(parcel.call() == 7);
  CHECK(parcel.message() == "what");
}

TEST_CASE("what is under way is bounded until the other side says that it came") {
  ParcelSender sender;
  sender.Put(Parcel(1, "", kMostValueBytes));
  uint64_t sent = 0;
  for (std::string piece = sender.Take({}); !piece.empty(); piece = sender.Take({})) {
    sent += piece.size();
  }
  CHECK(sent <= CreditWindow::kLargestPiece);
  CHECK(sender.waiting() > kMostValueBytes - CreditWindow::kLargestPiece);
  sender.Acked(sent, CreditWindow::TimePoint() + milliseconds(1));
  CHECK_FALSE(sender.Take(CreditWindow::TimePoint() + milliseconds(1)).empty());
}

TEST_CASE("small parcels share a piece") {
  ParcelSender sender;
  for (uint64_t call = 1; call <= 100; ++call) sender.Put(Parcel(call, "x", 0));
  ParcelReceiver receiver;
  receiver.Take(sender.Take({}));
  CHECK(sender.waiting() == 0);
  uint64_t call = 0;
  uint64_t count = 0;
  std::string_view message;
  while (receiver.Next(&call, &message)) CHECK(call == ++count);
  CHECK(count == 100);
}

TEST_CASE("a receiver takes nothing that is no parcel") {
  uint64_t call = 0;
  std::string_view message;
  ParcelReceiver too_long;
  too_long.Take(std::string("\xff\xff\xff\xff", 4));
  CHECK_FALSE(too_long.Next(&call, &message));
  CHECK(too_long.broken());
  ParcelReceiver nonsense;
  nonsense.Take(std::string("\2\0\0\0\x12\x09", 6));  // says nine bytes and has none
  CHECK_FALSE(nonsense.Next(&call, &message));
  CHECK(nonsense.broken());
  nonsense.Take("more");
  CHECK_FALSE(nonsense.Next(&call, &message));
  CHECK(nonsense.taken() == 10);
}

}  // namespace
}  // namespace hvd
