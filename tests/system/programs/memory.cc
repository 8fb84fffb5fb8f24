// SPDX-License-Identifier: Apache-2.0
// memory MODE [arguments]: what a job's shared memory takes, and what becomes of a job where there
// is none.
//   abort              rank 1 ends by abort(); the others say how long they did not know, in ms
//   hold SETS          makes so many process sets, uses each, and waits to be ended
//   scarce init|set|pending
//                      rank 1 has hardly more address space than it needs, and initialises hvd,
//                      makes a process set, or has a hundred thousand tensors pending
//   enter              initialises hvd, or says why it cannot
//   starved pairs|buckets KB
//                      rank 1 has so much more address space than it needs, and has many sends or
//                      many buckets under way: it says what error it gets
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "hvd/hvd.hpp"
#include "tests/system/programs/address_space.h"

namespace {

void Say(const std::string& text) {
  std::printf("rank %s: %s\n", std::getenv("HVD_RANK"), text.c_str());
  std::fflush(stdout);
}

int64_t NowMs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void Sum(const std::string& name, int32_t set = 0) {
  float value = 1;
  hvd::Options options;
  options.name = name.c_str();
  options.process_set = set;
  hvd::allreduce(&value, 1, options);
}

int Abort() {
  std::signal(SIGTERM, SIG_IGN);  // hvdrun's, when the first has ended
  hvd::Session session;
  int64_t begin = NowMs();
  try {
    Sum("before");
    begin = NowMs();
    if (hvd::rank() == 1) std::abort();
    Sum("after");
  } catch (const hvd::Error& error) {
    Say("heard after " + std::to_string(NowMs() - begin) + " ms: " + error.what());
  }
  return 1;
}

int Hold(int sets) {
  hvd::Session session;
  Sum("first");
  // The first rank, the first two, …: no two sets are of the same.
  std::vector<int32_t> ranks;
  for (int32_t next = 0; next < sets; ++next) {
    ranks.push_back(next);
    const int32_t set = hvd::add_process_set(ranks);
    if (hvd::rank() <= next) Sum("in the set", set);
  }
  Say("holds");
  while (true) pause();
}

// Rank 1 asks for something when rank 0 has all of them pending.
void SumMany() {
  std::vector<float> values(100000);
  std::vector<hvd::Handle> handles;
  for (float& value : values) {
    if (hvd::rank() == 1) break;
    hvd::Options options;
    options.name = "tensor " + std::to_string(handles.size());
    handles.push_back(hvd::allreduce_async(&value, 1, options));
  }
  Sum("the last");
}

// The other rank asks for them only when rank 1 has begun all that it can.
void SendMany(bool is_scarce, rlim_t more) {
  constexpr int kMost = 100000;
  static float value[100];
  std::vector<hvd::Handle> handles;
  handles.reserve(kMost);
  if (is_scarce) LimitAddressSpace(more);
  for (int64_t tag = 0; tag < kMost; ++tag) {
    handles.push_back(is_scarce ? hvd::send_async(value, 100, 0, tag)
                                : hvd::recv_async(value, 100, 1, tag));
  }
  for (hvd::Handle& handle : handles) handle.wait();
}

void MakeMany(bool is_scarce, rlim_t more) {
  std::vector<hvd_bucket_t*> buckets;
  buckets.reserve(10000);
  const std::vector<int64_t> counts(100, 10);
  if (is_scarce) LimitAddressSpace(more);
  hvd_status_t status = HVD_OK;
  for (int i = 0; i < 10000 && status == HVD_OK; ++i) {
    status = hvd_bucket_create(counts.data(), 100, nullptr, &buckets.emplace_back());
    for (int tensor = 0; tensor < 100 && status == HVD_OK; ++tensor) {
      status = hvd_bucket_ready(buckets.back(), tensor);
    }
    if (i % 3 == 2 && status == HVD_OK) status = hvd_bucket_wait(buckets[buckets.size() - 2]);
  }
  const std::string why = status != HVD_OK ? hvd_last_error() : "";
  for (hvd_bucket_t* bucket : buckets) hvd_bucket_destroy(bucket);
  if (status != HVD_OK) throw hvd::Error(status, why);
}

int Starved(const std::string& what, int kilobytes) {
  std::signal(SIGTERM, SIG_IGN);  // hvdrun's, when the first has ended
  const char* const rank = std::getenv("HVD_RANK");
  const bool is_scarce = rank != nullptr && std::strcmp(rank, "1") == 0;
  try {
    hvd::Session session;
    Sum("first");
    (what == "pairs" ? SendMany : MakeMany)(is_scarce, static_cast<rlim_t>(kilobytes) << 10);
    Say("had enough");
    return 0;
  } catch (const hvd::Error& error) {
    LiftLimit();
    Say(std::string("was told: ") + error.what());
  } catch (const std::bad_alloc&) {
    LiftLimit();
    Say("has no memory of its own");
  }
  return 1;
}

int Enter() {
  try {
    const hvd::Session session;
    return 0;
  } catch (const hvd::Error& error) {
    Say(error.what());
    return 1;
  }
}

int Scarce(const std::string& what) {
  std::signal(SIGTERM, SIG_IGN);  // hvdrun's, when the first has ended
  const bool is_scarce = std::strcmp(std::getenv("HVD_RANK"), "1") == 0;
  try {
    if (is_scarce && what == "init") LimitAddressSpace();
    hvd::Session session;
    Sum("first");
    if (is_scarce) LimitAddressSpace();
    if (what == "pending") SumMany();
    hvd::add_process_set({0, 1});
    Sum("second");
  } catch (const hvd::Error& error) {
    Say(error.what());
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "", argument = argc > 2 ? argv[2] : "";
  if (mode == "abort") return Abort();
  if (mode == "hold") return Hold(std::atoi(argument.c_str()));
  if (mode == "enter") return Enter();
  if (mode == "scarce") return Scarce(argument);
  if (mode == "starved" && argc > 3) return Starved(argument, std::atoi(argv[3]));
  std::fprintf(stderr, "memory: which mode?\n");
  return 2;
}
