// SPDX-License-Identifier: Apache-2.0
// joins: ranks that join with something pending, each something else; prints "joins right" on each
// rank when all that was pending is done, and every sum is right.
#include <memory>

#include "tests/system/programs/checks.h"

namespace {

constexpr size_t kCounts[] = {1, 1000, 2000, 100003};

// A sum in flight, of memory that all ranks of the host see or of its own.
class PendingSum {
 public:
  PendingSum(std::string name, size_t count, bool in_arena, int32_t set = 0)
      : name_(std::move(name)), shared_(in_arena ? count : 0), own_(in_arena ? 0 : count) {
    data_ = in_arena ? shared_.data() : own_.data();
    count_ = count;
    std::fill_n(data_, count, static_cast<float>(hvd::rank() + 1));
    hvd::Options options;
    options.name = name_;
    options.op = hvd::Op::kSum;
    options.process_set = set;
    handle_ = std::make_unique<hvd::Handle>(hvd::allreduce_async(data_, count, options));
  }
  void MustBe(float wanted) {
    handle_->wait();
    for (size_t i = 0; i < count_; ++i) {
      if (data_[i] == wanted) continue;
      Fail(name_ + " is " + std::to_string(data_[i]) + " instead of " + std::to_string(wanted));
    }
  }

 private:
  const std::string name_;
  hvd::Buffer<float> shared_;
  std::vector<float> own_;
  float* data_ = nullptr;
  size_t count_ = 0;
  std::unique_ptr<hvd::Handle> handle_;
};

float Mine() { return static_cast<float>(hvd::rank() + 1); }

void MustSum(const std::string& name, size_t count, float wanted) {
  PendingSum(name, count, false).MustBe(wanted);
}

// Returns the sum over all ranks but the first.
float OfTheRest() {
  float sum = 0;
  for (int rank = 1; rank < hvd::size(); ++rank) sum += static_cast<float>(rank + 1);
  return sum;
}

void CheckEachItsOwn(bool in_arena) {
  std::vector<std::unique_ptr<PendingSum>> sums;
  for (const size_t count : kCounts) {
    const std::string name = std::to_string(count) + " of rank " + std::to_string(hvd::rank());
    sums.push_back(std::make_unique<PendingSum>(name, count, in_arena));
  }
  const int32_t rows[] = {hvd::rank()};
  auto gathered = hvd::allgather_async(rows, 1, 1, "rows of " + std::to_string(hvd::rank()));
  if (hvd::join() < 0) Fail("nobody has joined last");
  for (const auto& sum : sums) sum->MustBe(Mine());
  if (gathered.wait() != std::vector<int32_t>{hvd::rank()}) Fail("rows at a join");
  MustSum("1000 of rank 0", 1000, OfTheRest() + 1);
}

// The first rank joins with something pending; the rest come to that only after something else.
void CheckTheRestFirst(bool in_arena) {
  for (const size_t count : kCounts) {
    const std::string name = "pending " + std::to_string(count);
    if (hvd::rank() == 0) {
      PendingSum sum(name, count, in_arena);
      hvd::join();
      sum.MustBe(OfTheRest() + 1);
      continue;
    }
    MustSum("other", count, OfTheRest());
    PendingSum(name, count, in_arena).MustBe(OfTheRest() + 1);
    PendingSum(name, count, in_arena).MustBe(OfTheRest());
    hvd::join();
  }
}

// Sums in the sets {0, 1} and {1, 2, ...}, and in that of all: each rank in all of its own.
void CheckSets(const std::vector<int32_t>& sets) {
  std::vector<std::unique_ptr<PendingSum>> sums;
  for (const int32_t set : sets) {
    if (hvd_process_set_rank(set) < 0) continue;
    for (const size_t count : kCounts) {
      const std::string name = std::to_string(count) + " of rank " + std::to_string(hvd::rank());
      sums.push_back(std::make_unique<PendingSum>(name, count, count == 1000, set));
    }
  }
  hvd::join();
  for (const auto& sum : sums) sum->MustBe(Mine());
}

}  // namespace

int main() {
  hvd::Session session;
  std::vector<int32_t> low = {0, 1}, high, sets = {0};
  for (int rank = 1; rank < hvd::size(); ++rank) high.push_back(rank);
  if (hvd::size() > 2) Must(hvd_add_process_set(low.data(), 2, &sets.emplace_back()), "low");
  Must(hvd_add_process_set(high.data(), hvd::size() - 1, &sets.emplace_back()), "high");
  for (int round = 0; round < 3; ++round) {
    for (const bool in_arena : {false, true}) {
      CheckEachItsOwn(in_arena);
      CheckTheRestFirst(in_arena);
    }
    CheckSets(sets);
  }
  std::printf("joins right\n");
  return 0;
}
