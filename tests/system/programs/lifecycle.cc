// SPDX-License-Identifier: Apache-2.0
// Every pair of calls that begin, change or end a rank's part in the job, beside one another: on
// two threads of each rank (`threads`), or one on rank 0 and the other on the rest (`ranks`), while
// each rank's main thread shuts down. Whatever comes of a call, it must end, with HVD_OK or with an
// error that says why; and the next hvd_init begins anew.
//
// lifecycle threads|ranks [ROUNDS [A B]]: all pairs in turn, or only this one. The timeline is
// written to $LIFECYCLE_TIMELINE; with LIFECYCLE_SAY each error is said.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hvd/hvd.h"

namespace {

// Far more than any pair takes, also on a busy machine.
constexpr auto kBound = std::chrono::seconds(40);

int my_rank = -1, my_size = 0;  // in all epochs the same
std::atomic<int> calls_failed{0}, calls_done{0};

// An error must say something.
void Note(hvd_status_t status, const char* call) {
  ++calls_done;
  if (status == HVD_OK) return;
  ++calls_failed;
  const char* why = hvd_last_error();
  if (std::getenv("LIFECYCLE_SAY") != nullptr) {
    std::fprintf(stderr, "rank %d: %s: %d: %s\n", my_rank, call, static_cast<int>(status), why);
  }
  if (why == nullptr || std::strlen(why) < 10) {
    std::fprintf(stderr, "rank %d: %s failed without a reason\n", my_rank, call);
    _exit(2);
  }
}

hvd_options_t Named(const char* name, hvd_op_t op) {
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.name = name;
  options.op = op;
  return options;
}

void Sum(int64_t count, const char* name) {
  std::vector<float> data(static_cast<size_t>(count), 1.0f);
  hvd_tensor_t tensor = HVD_TENSOR_INIT;
  tensor.data = data.data();
  tensor.shape = &count;
  tensor.ndim = 1;
  const hvd_options_t options = Named(name, HVD_SUM);
  const hvd_status_t status = hvd_allreduce(&tensor, &tensor, &options);
  Note(status, "allreduce");
  if (status != HVD_OK) return;
  // Ranks that have joined bring nothing.
  for (const float sum : data) {
    if (sum == data[0] && sum >= 1 && sum <= static_cast<float>(my_size)) continue;
    std::fprintf(stderr, "rank %d: a sum is %f, of %d ones\n", my_rank, sum, my_size);
    _exit(2);
  }
}

void SumSmall() { Sum(4, "small"); }
void SumLarge() { Sum(600000, "large"); }
void SumUnnamed() {
  for (int i = 0; i < 3; ++i) Sum(4, nullptr);
}

void SumGroup() {
  float a[2] = {1, 1};
  double b[2] = {1, 1};
  const int64_t count = 2;
  hvd_tensor_t tensors[2] = {HVD_TENSOR_INIT, HVD_TENSOR_INIT};
  for (hvd_tensor_t& tensor : tensors) tensor.shape = &count, tensor.ndim = 1;
  tensors[0].data = a;
  tensors[1].data = b;
  tensors[1].dtype = HVD_FLOAT64;
  const hvd_options_t options = Named("group", HVD_SUM);
  Note(hvd_grouped_allreduce(tensors, tensors, 2, &options), "grouped allreduce");
}

void SumAsync() {
  float data[4] = {1, 1, 1, 1};
  const int64_t count = 4;
  hvd_tensor_t tensor = HVD_TENSOR_INIT;
  tensor.data = data;
  tensor.shape = &count;
  tensor.ndim = 1;
  const hvd_options_t options = Named("async", HVD_SUM);
  hvd_handle_t handle = 0;
  const hvd_status_t submitted = hvd_allreduce_async(&tensor, &tensor, &options, &handle);
  Note(submitted, "allreduce_async");
  if (submitted == HVD_OK) Note(hvd_wait(handle), "wait");
}

void Init() { Note(hvd_init(nullptr), "init"); }
void Shutdown() { Note(hvd_shutdown(), "shutdown"); }

void AddSet() {
  const int32_t ranks[2] = {0, 1};
  int32_t set = 0;
  Note(hvd_add_process_set(ranks, my_size - 1, &set), "add_process_set");
}
void RemoveSet() { Note(hvd_remove_process_set(1), "remove_process_set"); }

void Join() {
  int32_t last = -1;
  Note(hvd_join(&last), "join");
}
void JoinAsync() {
  hvd_handle_t handle = 0;
  const hvd_status_t submitted = hvd_join_async(nullptr, &handle);
  Note(submitted, "join_async");
  if (submitted == HVD_OK) Note(hvd_wait_join(handle, nullptr), "wait_join");
}
void Barrier() { Note(hvd_barrier(nullptr), "barrier"); }

void UseBucket() {
  const int64_t counts[3] = {10, 1000, 7};
  hvd_options_t reduction = Named("bucket", HVD_SUM);
  hvd_bucket_options_t options = HVD_BUCKET_OPTIONS_INIT;
  options.reduction = &reduction;
  hvd_bucket_t* bucket = nullptr;
  const hvd_status_t made = hvd_bucket_create(counts, 3, &options, &bucket);
  Note(made, "bucket_create");
  if (made != HVD_OK) return;
  for (int32_t i = 0; i < 3; ++i) Note(hvd_bucket_ready(bucket, i), "bucket_ready");
  Note(hvd_bucket_wait(bucket), "bucket_wait");
  hvd_bucket_destroy(bucket);
}
// With its tensors under way. (Without a name it would be known by how many were made before, which
// a shutdown beside that leaves different on different ranks.)
void DropBucket() {
  const int64_t counts[2] = {10, 10};
  hvd_options_t reduction = Named("dropped", HVD_SUM);
  hvd_bucket_options_t options = HVD_BUCKET_OPTIONS_INIT;
  options.reduction = &reduction;
  hvd_bucket_t* bucket = nullptr;
  const hvd_status_t made = hvd_bucket_create(counts, 2, &options, &bucket);
  Note(made, "bucket_create");
  if (made != HVD_OK) return;
  for (int32_t i = 0; i < 2; ++i) Note(hvd_bucket_ready(bucket, i), "bucket_ready");
  hvd_bucket_destroy(bucket);
}

void AllocAndFree() {
  for (int i = 0; i < 4; ++i) {
    void* memory = nullptr;
    const hvd_status_t taken = hvd_alloc(100000, &memory);
    Note(taken, "alloc");
    if (taken == HVD_OK) Note(hvd_free(memory), "free");
  }
}

void Timeline() {
  const char* path = std::getenv("LIFECYCLE_TIMELINE");
  if (path == nullptr) return;
  Note(hvd_start_timeline(path), "start_timeline");
  Note(hvd_stop_timeline(), "stop_timeline");
}

struct Call {
  const char* name;
  void (*make)();
};
const Call kCalls[] = {{"init", Init},          {"shutdown", Shutdown},
                       {"add", AddSet},         {"remove", RemoveSet},
                       {"join", Join},          {"join-async", JoinAsync},
                       {"barrier", Barrier},    {"small", SumSmall},
                       {"large", SumLarge},     {"unnamed", SumUnnamed},
                       {"group", SumGroup},     {"async", SumAsync},
                       {"bucket", UseBucket},   {"drop-bucket", DropBucket},
                       {"alloc", AllocAndFree}, {"timeline", Timeline}};

// Ends the program with the names of the pair that does not.
class Watchdog {
 public:
  Watchdog() : thread_([this] { Watch(); }) {}
  ~Watchdog() {
    Say("");
    thread_.join();
  }
  void Say(const std::string& what) {
    std::lock_guard<std::mutex> lock(mutex_);
    what_ = what;
    over_ = what.empty();
    ++said_;
    changed_.notify_all();
  }

 private:
  void Watch() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!over_) {
      const int said = said_;
      if (changed_.wait_for(lock, kBound, [&] { return said_ != said || over_; })) continue;
      std::fprintf(stderr, "rank %d: %s does not end\n", my_rank, what_.c_str());
      _exit(3);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_ = "the first init";
  int said_ = 0;
  bool over_ = false;
  std::thread thread_;
};

// One of the last ranks, so that there is something to remove and to leave.
void MakeSet() {
  const int32_t ranks[2] = {my_size - 1, 1};
  int32_t set = 0;
  Note(hvd_add_process_set(ranks, my_size - 1, &set), "add_process_set");
}

// Lets the others' calls come to different points before this rank's.
void Dawdle(int turn) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::microseconds((turn * 79 + my_rank * 47) % 700);
  while (Clock::now() < end) {
  }
}

// In the midst of which this rank's main thread shuts down.
void OnThreads(const std::vector<Call>& calls, int round) {
  std::atomic<size_t> begun{0};
  std::vector<std::thread> threads;
  for (const Call& call : calls) {
    threads.emplace_back([&begun, &call] {
      ++begun;
      call.make();
    });
  }
  while (begun.load() < calls.size()) std::this_thread::yield();
  Dawdle(round);
  Shutdown();
  for (std::thread& thread : threads) thread.join();
}

bool Is(const Call& call, const char* name) { return std::strcmp(call.name, name) == 0; }

void Run(const Call& a, const Call& b, bool on_threads, int round) {
  Init();
  MakeSet();
  const bool inits = Is(a, "init") || Is(b, "init");
  if (!on_threads) {
    OnThreads({my_rank == 0 ? a : b}, round);
  } else if (inits) {
    OnThreads({a, b}, round);
  } else {
    std::thread other([&a] { a.make(); });
    Dawdle(round);
    b.make();
    other.join();
  }
  Shutdown();
}

// Ranks that have shut down before an init of the same pair have one epoch more than others, and
// then one pair less in common: so these come last.
std::vector<std::pair<Call, Call>> Pairs(char** words, int count) {
  std::vector<std::pair<Call, Call>> pairs, with_init;
  for (const Call& a : kCalls) {
    for (const Call& b : kCalls) {
      if (count >= 2 && !(Is(a, words[0]) && Is(b, words[1]))) continue;
      const bool inits = Is(a, "init") || Is(b, "init");
      (inits ? with_init : pairs).emplace_back(a, b);
    }
  }
  pairs.insert(pairs.end(), with_init.begin(), with_init.end());
  return pairs;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 64;
  const bool on_threads = std::strcmp(argv[1], "threads") == 0;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 1;
  Watchdog watchdog;
  Init();
  my_rank = hvd_rank();
  my_size = hvd_size();
  if (my_size < 2 || my_size > 3) return 64;
  Shutdown();
  const auto pairs = Pairs(argv + 3, argc - 3);
  for (const auto& [a, b] : pairs) {
    for (int round = 0; round < rounds; ++round) {
      watchdog.Say(std::string(a.name) + " beside " + b.name);
      Run(a, b, on_threads, round);
    }
  }
  std::printf("rank %d: %zu pairs ended, %d of %d calls with an error\n", my_rank, pairs.size(),
              calls_failed.load(), calls_done.load());
  return 0;
}
