// SPDX-License-Identifier: Apache-2.0
#include "daemon/members/memory/state_box.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace hvd::daemon {
namespace {

// A worker's view of one of its files.
class Written {
 public:
  explicit Written(int fd) {
    REQUIRE(ftruncate(fd, kStateContentsAt) == 0);
    head_ = static_cast<StateHead*>(
        mmap(nullptr, sizeof(StateHead), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    REQUIRE(head_ != MAP_FAILED);
  }
  ~Written() { munmap(head_, sizeof(StateHead)); }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;
  void Say(int local_rank, const StateWord& word) { EndState(&head_->cells[local_rank], word); }
  uint64_t number() const { return CompleteState(*head_).number; }

 private:
  StateHead* head_;
};

TEST_CASE("a host that has written nothing has no commit") {
  StateBox box;
  CHECK(box.Kept().newest == 0);
  const auto files = box.FilesOf(0);
  REQUIRE(files.ok());
  CHECK(box.Kept().newest == 0);
}

TEST_CASE("members of a host share its files, and have two of their share") {
  StateBox box;
  const auto first = box.FilesOf(0), second = box.FilesOf(1), again = box.FilesOf(0);
  REQUIRE((first.ok() && second.ok() && again.ok()));
  CHECK((*first)[0] == (*second)[0]);
  CHECK((*first)[1] == (*second)[1]);
  CHECK((*first)[2] != (*second)[2]);
  CHECK(*first == *again);
}

TEST_CASE("the newest complete commit of both files is the host's") {
  StateBox box;
  const auto files = box.FilesOf(0);
  REQUIRE(files.ok());
  Written even((*files)[0]), odd((*files)[1]);
  for (int rank : {0, 1}) even.Say(rank, {4, 1, 9, 2});
  CHECK(box.Kept().newest == 4);
  odd.Say(0, {5, 1, 9, 2});
  CHECK(box.Kept().newest == 4);
  odd.Say(1, {5, 1, 9, 2});
  CHECK(box.Kept().newest == 5);
  CHECK(box.Kept().before == 4);
  box.VoidBeyond(4);
  CHECK(box.Kept().newest == 4);
  CHECK(odd.number() == 0);
  box.VoidBeyond(0);
  CHECK(box.Kept().newest == 0);
}

TEST_CASE("what is void is void in the files of shares, too") {
  StateBox box;
  const auto files = box.FilesOf(3);
  REQUIRE(files.ok());
  Written own((*files)[3]);
  own.Say(0, {5, 1, 9, 1});
  box.VoidBeyond(4);
  CHECK(own.number() == 0);
}

TEST_CASE("nobody can take a file's bytes away, and one that is too short holds nothing") {
  StateBox box;
  const auto files = box.FilesOf(0);
  REQUIRE(files.ok());
  REQUIRE(ftruncate((*files)[0], 100) == 0);
  CHECK(box.Kept().newest == 0);
  CHECK(ftruncate((*files)[0], 0) != 0);
  Written even((*files)[0]);
  even.Say(0, {2, 1, 9, 1});
  CHECK(box.Kept().newest == 2);
  CHECK(ftruncate((*files)[0], 0) != 0);
}

// No more address space for this process while it lives.
class NoMoreSpace {
 public:
  NoMoreSpace() {
    REQUIRE(getrlimit(RLIMIT_AS, &before_) == 0);
    const struct rlimit none = {1 << 20, before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_AS, &none) == 0);
  }
  ~NoMoreSpace() { setrlimit(RLIMIT_AS, &before_); }
  NoMoreSpace(const NoMoreSpace&) = delete;
  NoMoreSpace& operator=(const NoMoreSpace&) = delete;

 private:
  struct rlimit before_ {};
};

TEST_CASE("what is committed is found, and voided, where no more memory can be mapped") {
  StateBox box;
  const auto files = box.FilesOf(0);
  REQUIRE(files.ok());
  Written even((*files)[0]), odd((*files)[1]);
  even.Say(0, {4, 1, 9, 1});
  odd.Say(0, {5, 1, 9, 1});
  KeptCommits kept;
  {
    const NoMoreSpace none;
    kept = box.Kept();
    box.VoidBeyond(4);
  }
  CHECK(kept.newest == 5);
  CHECK(kept.before == 4);
  CHECK(odd.number() == 0);
  CHECK(even.number() == 4);
}

TEST_CASE("a host that cannot look at its files says so when it makes them") {
  StateBox box;
  absl::Status made;
  {
    const NoMoreSpace none;
    made = box.FilesOf(0).status();
  }
  REQUIRE(absl::IsResourceExhausted(made));
  CHECK(std::string(made.message()).find("committed state") != std::string::npos);
  CHECK(std::string(made.message()).find("ulimit -v") != std::string::npos);
  CHECK(box.FilesOf(0).ok());
}

}  // namespace
}  // namespace hvd::daemon
