// SPDX-License-Identifier: Apache-2.0
#include "cli/job/job_rendezvous.h"

#include <catch2/catch.hpp>

namespace hvd::cli {
namespace {

v1::HostAddresses Addresses(uint64_t epoch, std::vector<int> ranks) {
  v1::HostAddresses addresses;
  addresses.set_epoch(epoch);
  for (const int rank : ranks) {
    addresses.add_addresses()->set_rank(rank);
    addresses.mutable_addresses(addresses.addresses_size() - 1)
        ->set_address("at " + std::to_string(rank));
  }
  return addresses;
}

const Topology kTopology({{"a", 2}, {"b", 1}});

TEST_CASE("the table is complete with the last host, and the start with the last ready one") {
  JobRendezvous book(&kTopology);
  CHECK(book.newest() == 0);
  CHECK_FALSE(book.Collect(1, Addresses(1, {2})));
  book.Joined(2, 1, 5);
  CHECK(book.waiting_since() == 5);
  CHECK(book.Missing() == "a (ranks 0,1)");
  book.Joined(1, 1, 6);
  CHECK(book.waiting_since() == 5);
  CHECK(book.Missing() == "a (rank 0)");
  book.Joined(0, 1, 7);
  CHECK(book.waiting_since() == 0);
  CHECK_FALSE(book.Collect(1, Addresses(1, {2})));
  const auto table = book.Collect(0, Addresses(1, {0, 1}));
  REQUIRE(table);
  CHECK(table->epoch() == 1);
  CHECK(table->addresses_size() == 3);
  CHECK(book.waiting_since() == 0);
  CHECK_FALSE(book.Ready(0, 1));
  CHECK_FALSE(book.Ready(0, 1));
  CHECK(book.Ready(1, 1));
  CHECK_FALSE(book.Ready(1, 1));
}

TEST_CASE("who takes its join back is missing again") {
  JobRendezvous book(&kTopology);
  for (const int rank : {0, 1, 2}) book.Joined(rank, 1, 5 + rank);
  CHECK(book.waiting_since() == 0);
  book.Withdrawn(1, 1);
  CHECK(book.waiting_since() == 5);
  CHECK(book.Missing() == "a (rank 1)");
  CHECK(book.WaitingFor(1) == std::vector<uint64_t>{1});
  book.Joined(1, 1, 9);
  CHECK(book.waiting_since() == 0);
  for (const int rank : {0, 1, 2}) book.Withdrawn(rank, 1);
  CHECK(book.waiting_since() == 0);
  CHECK(book.WaitingFor(1).empty());
}

TEST_CASE("a later epoch may begin before the one before is everywhere left") {
  JobRendezvous book(&kTopology);
  book.Collect(0, Addresses(1, {0, 1}));
  REQUIRE(book.Collect(1, Addresses(1, {2})));
  CHECK_FALSE(book.Ready(0, 1));
  CHECK_FALSE(book.Collect(0, Addresses(2, {0, 1})));
  CHECK(book.Ready(1, 1));
  CHECK(book.newest() == 2);
  REQUIRE(book.Collect(1, Addresses(2, {2})));
  CHECK_FALSE(book.Ready(0, 3));
}

TEST_CASE("an epoch that was aborted before its start is over for those who join the next") {
  JobRendezvous book(&kTopology);
  book.Joined(0, 1, 5);
  book.Joined(1, 1, 5);
  CHECK(book.WaitingFor(2) == std::vector<uint64_t>{1});
  CHECK(book.WaitingFor(1).empty());
  book.Joined(0, 2, 6);
  CHECK(book.WaitingFor(2) == std::vector<uint64_t>{1, 2});
  CHECK(book.WaitingFor(1) == std::vector<uint64_t>{2});
  book.Joined(1, 2, 7);
  CHECK(book.WaitingFor(2) == std::vector<uint64_t>{2});
  CHECK(book.waiting_since() == 0);  // of epoch 1: nobody waits there any longer
  book.Joined(2, 1, 8);              // it has yet to hear of the abort
  CHECK(book.WaitingFor(2) == std::vector<uint64_t>{2});
  CHECK(book.WaitingFor(0).empty());
  CHECK(book.waiting_since() == 0);
}

}  // namespace
}  // namespace hvd::cli
