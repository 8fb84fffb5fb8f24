// SPDX-License-Identifier: Apache-2.0
// Which sends and receives meet, and what is said when they do not fit.
#include "runtime/engine/pairs/pair_book.h"

#include <catch2/catch.hpp>

#include "runtime/engine/pairs.h"

namespace hvd::rt {
namespace {

constexpr PairKey kSend7 = {PairSide::kSends, 7};
constexpr PairKey kReceive7 = {PairSide::kReceives, 7};

PairNotice Said(const PairKey& key, int64_t elements, uint32_t dtype = HVD_FLOAT32) {
  PairNotice notice;
  notice.key = key;
  notice.dtype = dtype;
  notice.ndim = 1;
  notice.shape[0] = elements;
  return notice;
}

TEST_CASE("sends meet receives of their tag in order, whoever comes first") {
  PairBook book;
  PairTask first, second, third;
  CHECK_FALSE(book.Ask(kSend7, &first));
  CHECK_FALSE(book.Ask(kSend7, &second));
  CHECK(book.Hear(Said(kReceive7, 1)) == &first);
  CHECK(book.Hear(Said(kReceive7, 2)) == &second);
  CHECK(book.Hear(Said(kReceive7, 3)) == nullptr);
  CHECK(book.Hear(Said(kReceive7, 4)) == nullptr);
  CHECK(book.Ask(kSend7, &third)->shape[0] == 3);
  CHECK(book.Ask(kSend7, &third)->shape[0] == 4);
  CHECK_FALSE(book.Ask(kSend7, &third));
}

TEST_CASE("other tags, and the same side, do not meet") {
  PairBook book;
  PairTask mine;
  CHECK_FALSE(book.Ask(kSend7, &mine));
  CHECK(book.Hear(Said(kSend7, 1)) == nullptr);
  CHECK(book.Hear(Said({PairSide::kReceives, 8}, 1)) == nullptr);
  CHECK(book.Hear(Said({PairSide::kReceives, -7}, 1)) == nullptr);
  CHECK(book.Hear(Said(kReceive7, 1)) == &mine);
}

TEST_CASE("what was asked before a join that is over does not meet what is asked behind it") {
  PairBook book;
  PairTask mine;
  CHECK(book.Hear(Said(kReceive7, 1)) == nullptr);
  PairKey behind = kSend7;
  behind.round = 1;
  CHECK_FALSE(book.Ask(behind, &mine));
  CHECK(book.TakeUnanswered(0).size() == 1);
  PairNotice later = Said(kReceive7, 2);
  later.key.round = 1;
  CHECK(book.Hear(later) == &mine);
}

TEST_CASE("who goes away answers what the peer alone has asked for, once") {
  PairBook book;
  PairTask mine;
  CHECK_FALSE(book.Ask(kReceive7, &mine));
  CHECK(book.Hear(Said({PairSide::kSends, 8}, 1)) == nullptr);
  CHECK(book.Hear(Said({PairSide::kReceives, 9}, 1)) == nullptr);
  PairNotice later = Said({PairSide::kReceives, 9}, 1);
  later.key.round = 4;
  CHECK(book.Hear(later) == nullptr);
  CHECK(book.TakeUnanswered(3).size() == 2);
  CHECK(book.TakeUnanswered(3).empty());
  CHECK(book.TakeUnanswered(4).size() == 1);
  CHECK_FALSE(book.Ask({PairSide::kReceives, 8}, &mine));
  CHECK(book.Hear(Said(kSend7, 1)) == &mine);
}

TEST_CASE("what does not fit is said in the same words on both sides") {
  const PairNotice send = Said(kSend7, 12), receive = Said(kReceive7, 12, HVD_FLOAT64);
  const absl::Status sender = CheckMeeting({send, receive, 3, 5});
  CHECK(absl::IsFailedPrecondition(sender));
  CHECK(sender.message() ==
        "send and receive do not fit (tag 7): rank 3 sends float32 [12], rank 5 receives float64 "
        "[12]; give both tensors the same dtype and number of elements");
  CHECK(CheckMeeting({receive, send, 5, 3}) == sender);
  CHECK_FALSE(CheckMeeting({Said(kSend7, 12), Said(kReceive7, 13), 0, 1}).ok());
}

TEST_CASE("shapes may differ where the elements are as many") {
  PairNotice receive = Said(kReceive7, 3);
  receive.ndim = 2;
  receive.shape[1] = 4;
  CHECK(CheckMeeting({Said(kSend7, 12), receive, 0, 1}).ok());
}

TEST_CASE("a peer that is away is named") {
  PairNotice joined = Said(kReceive7, 0);
  joined.word = PairWord::kJoined;
  const absl::Status status = CheckMeeting({Said(kSend7, 12), joined, 0, 4});
  CHECK(absl::IsFailedPrecondition(status));
  CHECK(status.message().find("send to rank 4 (tag 7): rank 4 has joined") == 0);
  PairNotice left = Said(kSend7, 0);
  left.word = PairWord::kLeft;
  CHECK(CheckMeeting({Said(kReceive7, 12), left, 0, 4}) ==
        absl::AbortedError("receive from rank 4 (tag 7): rank 4 has called shutdown without it"));
}

}  // namespace
}  // namespace hvd::rt
