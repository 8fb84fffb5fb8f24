// SPDX-License-Identifier: Apache-2.0
// joins_async MODE: joins without a thread that waits.
//   together    the last rank works on while the others have joined, each in another way of
//   waiting;
//               what a callback submits then meets what the others do
//   refused     what a rank that has joined may not ask for, until its join is done
//   sets        ranks join in all their process sets
//   shutdown    rank 0 shuts down while its join is under way: all are told
//   died        rank 1 kills itself while the others have joined
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "hvd/hvd.hpp"

namespace {

constexpr auto kBound = std::chrono::seconds(60);
constexpr size_t kCounts[] = {1, 5000, 100003};

[[noreturn]] void Wrong(const std::string& what) {
  std::fprintf(stderr, "rank %d: %s (%s)\n", hvd_rank(), what.c_str(), hvd_last_error());
  std::_Exit(3);
}
void Need(bool holds, const std::string& what) {
  if (!holds) Wrong(what);
}
void Ok(hvd_status_t status, const std::string& what) { Need(status == HVD_OK, what); }

bool IsLast() { return hvd_rank() == hvd_size() - 1; }
float SumOfAll() { return static_cast<float>(hvd_size() * (hvd_size() + 1)) / 2; }

void MustSum(const char* name, size_t count, float wanted, int32_t set = 0) {
  std::vector<float> data(count, static_cast<float>(hvd_rank() + 1));
  hvd::Options options;
  options.name = name;
  options.op = hvd::Op::kSum;
  options.process_set = set;
  hvd::allreduce(data, options);
  for (const float each : data) Need(each == wanted, std::string(name) + " is wrong");
}

// A join, and what is told of it.
struct Join {
  void Submit() {
    hvd_options_t options = HVD_OPTIONS_INIT;
    options.done = OnDone;
    options.done_arg = this;
    Ok(hvd_join_async(&options, &handle), "join_async");
  }
  void AwaitTold() const {
    const auto end = std::chrono::steady_clock::now() + kBound;
    while (told == 0) {
      Need(std::chrono::steady_clock::now() < end, "a join is not told of");
      std::this_thread::yield();
    }
    Need(told == 1, "told twice");
  }
  static void OnDone(void* arg, hvd_handle_t handle, hvd_status_t status) {
    Join& join = *static_cast<Join*>(arg);
    Need(handle == join.handle, "told of another handle");
    join.status = status;
    if (status == HVD_OK && join.submits_then) join.SubmitThen();
    ++join.told;
  }
  void SubmitThen() {
    data.assign(5000, static_cast<float>(hvd_rank() + 1));
    const int64_t shape[] = {5000};
    hvd_tensor_t tensor = HVD_TENSOR_INIT;
    tensor.data = data.data();
    tensor.shape = shape;
    tensor.ndim = 1;
    hvd_options_t options = HVD_OPTIONS_INIT;
    options.name = "then";
    options.op = HVD_SUM;
    Ok(hvd_allreduce_async(&tensor, &tensor, &options, &then), "submit from within the callback");
  }

  bool submits_then = false;
  hvd_handle_t handle = 0, then = 0;
  std::vector<float> data;
  std::atomic<int> told{0}, status{-1};
};

// In each of the ways in which a caller may wait, by turns.
int32_t WaitFor(hvd_handle_t handle, int way) {
  int32_t done = 0, last = -1;
  if (way % 3 == 1) {
    while (done == 0) Ok(hvd_poll(handle, &done), "poll");
  }
  if (way % 3 == 2) {
    while (done == 0) Ok(hvd_wait_for(handle, 100000, &done), "wait_for");
  }
  Ok(hvd_wait_join(handle, &last), "wait_join");
  return last;
}

// While the last rank has not joined, nobody's join is done.
void MustBeUnderWay(hvd_handle_t handle) {
  int32_t done = 1;
  Ok(hvd_poll(handle, &done), "poll");
  Need(done == 0, "done before all have joined");
  Ok(hvd_wait_for(handle, 5000, &done), "wait_for");
  Need(done == 0, "done before all have joined");
}

std::string Key(const char* what, int round, int rank) {
  return std::string(what) + " " + std::to_string(round) + " " + std::to_string(rank);
}

void AwaitOthers(int round) {
  for (int rank = 0; rank < hvd_size() - 1; ++rank) {
    hvd::store::get(Key("looked", round, rank), kBound);
  }
}

void Together() {
  for (int round = 0; round < 12; ++round) {
    Join join;
    join.submits_then = true;
    hvd_handle_t handle = 0;
    if (!IsLast()) {
      if (round % 2 == 0) {
        join.Submit();
        handle = join.handle;
      } else {
        Ok(hvd_join_async(nullptr, &handle), "join_async");
      }
      MustBeUnderWay(handle);
      hvd::store::set(Key("looked", round, hvd_rank()), "");
    } else {
      AwaitOthers(round);  // their engines work, though none of their threads is inside
      for (const size_t count : kCounts) MustSum("alone", count, static_cast<float>(hvd_size()));
      Need(hvd::allgather(std::vector<int32_t>{7}, "rows") == std::vector<int32_t>{7}, "rows");
      hvd::barrier();
      join.Submit();
      handle = join.handle;
    }
    if (join.handle != 0) join.AwaitTold();
    Need(WaitFor(handle, round + hvd_rank()) == hvd_size() - 1, "another rank joined last");
    if (join.then != 0) {
      Ok(hvd_wait(join.then), "wait for what the callback submitted");
      Need(join.data.front() == SumOfAll() && join.data.back() == SumOfAll(), "then");
    } else {
      MustSum("then", 5000, SumOfAll());
    }
    MustSum("unison", 3, SumOfAll());
  }
}

void MustRefuse(hvd_status_t status, const char* text) {
  Need(status == HVD_ERR_MISMATCH, std::string("not refused: ") + text);
  Need(std::strstr(hvd_last_error(), text) != nullptr, std::string("refused otherwise: ") + text);
}

void Refused() {
  hvd_handle_t handle = 0, other = 0;
  if (IsLast()) {
    AwaitOthers(0);
    MustSum("alone", 5000, static_cast<float>(hvd_size()));
    Ok(hvd_join_async(nullptr, &handle), "join_async");
  } else {
    Ok(hvd_join_async(nullptr, &handle), "join_async");
    MustRefuse(hvd_join_async(nullptr, &other), "this rank has joined already");
    Need(other == 0, "a handle of what was refused");
    MustRefuse(hvd_join(nullptr), "this rank has joined already");
    Join x;
    float data = 1;
    hvd_tensor_t tensor = HVD_TENSOR_INIT;
    tensor.data = &data;
    hvd_options_t options = HVD_OPTIONS_INIT;
    options.name = "x";
    MustRefuse(hvd_allreduce_async(&tensor, &tensor, &options, &other), "this rank has joined; it");
    MustRefuse(hvd_allreduce(&tensor, &tensor, &options), "this rank has joined; it");
    MustRefuse(hvd_barrier_async(nullptr, &other), "this rank has joined; it");
    int32_t set = 0;
    const int32_t ranks[] = {0};
    if (hvd_size() > 1) MustRefuse(hvd_add_process_set(ranks, 1, &set), "this rank has joined; it");
    MustBeUnderWay(handle);
    hvd::store::set(Key("looked", 0, hvd_rank()), "");
  }
  Need(WaitFor(handle, 0) == hvd_size() - 1, "another rank joined last");
  MustSum("unison", 5000, SumOfAll());
}

void Sets() {
  std::vector<int32_t> low = {0}, high, sets(2);
  for (int rank = 1; rank < hvd_size(); ++rank) high.push_back(rank);
  Ok(hvd_add_process_set(low.data(), 1, &sets[0]), "low");
  Ok(hvd_add_process_set(high.data(), hvd_size() - 1, &sets[1]), "high");
  const int32_t mine = sets[hvd_rank() == 0 ? 0 : 1];
  const float all = hvd_rank() == 0 ? 1 : SumOfAll() - 1;
  // Rank 1 leaves the rest of its set working.
  const float without = hvd_rank() > 0 && hvd_size() > 2 ? all - 2 : all;
  for (int round = 0; round < 5; ++round) {
    hvd_handle_t handle = 0;
    if (hvd_rank() != 1 || hvd_size() == 2) MustSum("before", 5000, without, mine);
    Ok(hvd_join_async(nullptr, &handle), "join_async");
    Need(WaitFor(handle, round) >= 0, "nobody joined last");
    MustSum("in the set", 5000, all, mine);
    MustSum("in all", 5000, SumOfAll());
  }
}

void Shutdown() {
  Join join;
  if (hvd_rank() == 0) {
    hvd::store::get("others", kBound);
    join.Submit();
    MustBeUnderWay(join.handle);
    hvd_shutdown();
    Need(join.told == 1 && join.status == HVD_ERR_ABORTED, "not told by the end of shutdown");
    Need(hvd_wait(join.handle) == HVD_ERR_ABORTED, "the wait says something else");
    return;
  }
  if (hvd_rank() == 1) hvd::store::set("others", "");
  try {
    while (true) hvd::barrier();
  } catch (const hvd::Error& error) {
    std::printf("told: %s\n", error.what());
  }
}

void Died() {
  signal(SIGTERM, SIG_IGN);  // the job's end must not come before we have said what was told
  Join join;
  hvd::barrier();
  if (hvd_rank() == 1) {
    for (int rank = 0; rank < hvd_size(); ++rank) {
      if (rank != 1) hvd::store::get(Key("looked", 0, rank), kBound);
    }
    raise(SIGKILL);
  }
  join.Submit();
  MustBeUnderWay(join.handle);
  hvd::store::set(Key("looked", 0, hvd_rank()), "");
  join.AwaitTold();
  Need(join.status == HVD_ERR_ABORTED, "told something else");
  Need(hvd_wait_join(join.handle, nullptr) == HVD_ERR_ABORTED, "the wait says something else");
  hvd_error_info_t info = HVD_ERROR_INFO_INIT;
  Ok(hvd_last_error_info(&info), "last_error_info");
  Need(info.name[0] == 0, "a join has no name");
  std::printf("told: %s\n", info.message);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string mode = argv[1];
  Ok(hvd_init(nullptr), "init");
  if (mode == "together") Together();
  if (mode == "refused") Refused();
  if (mode == "sets") Sets();
  if (mode == "shutdown") Shutdown();
  if (mode == "died") Died();
  hvd_shutdown();
  return 0;
}
