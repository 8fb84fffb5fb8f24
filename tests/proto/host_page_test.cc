#include "proto/host_page.h"

#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <memory>
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
  CHECK(page->aborted.load() == 1);
  CHECK(std::string(page->abort_text) == "rank 3 died");
  CHECK(page->abort_rank.load() == -1);
}

TEST_CASE("an abort says which rank has left") {
  auto page = std::make_unique<HostPage>();
  CHECK(AbortEpoch(page.get(), {"it is gone", 4}, nullptr));
  CHECK_FALSE(AbortEpoch(page.get(), "rank 3 died", nullptr));
  CHECK(page->abort_rank.load() == 4);
}

}  // namespace
}  // namespace hvd
