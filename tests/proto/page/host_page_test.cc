// SPDX-License-Identifier: Apache-2.0
#include "proto/page/host_page.h"

#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>

namespace hvd {
namespace {

TEST_CASE("a ring wakes a futex sleeper") {
  auto page = std::make_unique<HostPage>();
  page->local_size = 2;
  std::thread sleeper([&] {
    page->bell.futex_sleepers.fetch_add(1);
    while (page->bell.word.load() == 0) {
      syscall(SYS_futex, &page->bell.word, FUTEX_WAIT, 0, nullptr, nullptr, 0);
    }
    page->bell.futex_sleepers.fetch_sub(1);
  });
  Ring(&page->bell, nullptr, 2);
  sleeper.join();
  CHECK(page->bell.word.load() == 1);
}

TEST_CASE("a ring writes only to the event fds of those asleep") {
  auto page = std::make_unique<HostPage>();
  const int fds[2] = {eventfd(0, EFD_NONBLOCK), eventfd(0, EFD_NONBLOCK)};
  page->bell.fd_sleepers[0] = 2;
  Ring(&page->bell, fds, 2);
  uint64_t count = 0;
  CHECK(read(fds[0], &count, 8) == -1);
  CHECK(read(fds[1], &count, 8) == 8);
  CHECK(count == 1);
  close(fds[0]);
  close(fds[1]);
}

TEST_CASE("the first abort wins and its text stays") {
  auto page = std::make_unique<HostPage>();
  CHECK(AbortEpoch(page.get(), "rank 3 died", nullptr));
  CHECK_FALSE(AbortEpoch(page.get(), {"rank 4 has left", 4}, nullptr));
  CHECK(page->aborted.load() != 0);
  CHECK(std::string(CauseOf(*page).text) == "rank 3 died");
  CHECK(CauseOf(*page).rank == -1);
}

TEST_CASE("an abort says which rank has left") {
  auto page = std::make_unique<HostPage>();
  CHECK(AbortEpoch(page.get(), {"it is gone", 4}, nullptr));
  CHECK_FALSE(AbortEpoch(page.get(), "rank 3 died", nullptr));
  CHECK(CauseOf(*page).rank == 4);
}

TEST_CASE("an abort that its rank never completes holds up neither the daemon's nor another's") {
  auto page = std::make_unique<HostPage>();
  page->abort_notes_taken = 1;  // a rank has taken a note, and has died
  SECTION("the daemon's") {
    CHECK(AbortEpochAsDaemon(page.get(), {"rank 1 was killed"}, nullptr));
    CHECK_FALSE(AbortEpoch(page.get(), "rank 2 has lost rank 1", nullptr));
    CHECK(std::string(CauseOf(*page).text) == "rank 1 was killed");
  }
  SECTION("another rank's") {
    CHECK(AbortEpoch(page.get(), {"rank 2 has lost rank 1", 1}, nullptr));
    CHECK_FALSE(AbortEpochAsDaemon(page.get(), {"rank 1 was killed"}, nullptr));
    CHECK(std::string(CauseOf(*page).text) == "rank 2 has lost rank 1");
    CHECK(CauseOf(*page).rank == 1);
  }
  SECTION("the daemon's, when no rank has a note left") {
    page->abort_notes_taken = kAbortNotes - 1;
    CHECK_FALSE(AbortEpoch(page.get(), "rank 2 has lost rank 1", nullptr));
    CHECK(page->aborted.load() == 0);
    CHECK(AbortEpochAsDaemon(page.get(), {"rank 1 was killed"}, nullptr));
  }
  CHECK(page->aborted.load() != 0);
}

TEST_CASE("many who abort at once: one says so, and all read its words") {
  for (int round = 0; round < 50; ++round) {
    auto page = std::make_unique<HostPage>();
    std::atomic<int> first{0};
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 4; ++rank) {
      ranks.emplace_back([&, rank] {
        const std::string text(200, static_cast<char>('a' + rank));
        if (rank == 0) first += AbortEpochAsDaemon(page.get(), {text.c_str(), rank}, nullptr);
        if (rank != 0) first += AbortEpoch(page.get(), {text.c_str(), rank}, nullptr);
        const AbortCause cause = CauseOf(*page);
        if (cause.text != std::string(200, static_cast<char>('a' + cause.rank))) first += 100;
      });
    }
    for (std::thread& rank : ranks) rank.join();
    CHECK(first.load() == 1);
  }
}

TEST_CASE("what a rank executes can be read while it begins and ends") {
  NotedWork work;
  CHECK(ReadWork(work).number == 0);
  BeginWork(&work, 7, "allreduce 'x' and 3 more");
  CHECK(ReadWork(work).number == 7);
  CHECK(ReadWork(work).text == "allreduce 'x' and 3 more");
  EndWork(&work);
  CHECK(ReadWork(work).number == 0);
  std::atomic<bool> over{false};
  std::thread rank([&] {
    for (uint64_t number = 8; !over; ++number) {
      BeginWork(&work, number, std::string(100, static_cast<char>('a' + number % 26)).c_str());
      EndWork(&work);
    }
  });
  int wrong = 0;
  for (int looks = 0; looks < 20000; ++looks) {
    const WorkSeen seen = ReadWork(work);
    if (seen.number == 0) continue;
    wrong += seen.text != std::string(100, static_cast<char>('a' + seen.number % 26));
  }
  over = true;
  rank.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace hvd
