// SPDX-License-Identifier: Apache-2.0
// gpu_calls MODE: what calls on tensors of a GPU promise besides their results (differential has
// those). Modes: "orders", "errors", "pairs", "large", "released", "fails" (a GPU that fails on
// order), "buckets", "refused" (what was ordered cannot be had), "joined" (rank 0 has), "idle" (for
// some seconds), "loop" (until it is ended from outside; prints "looping"), "dies" (the same, and
// the last rank kills itself), "found" (which driver, GPUs and NCCL there are, without joining a
// job).
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "runtime/gpu/nccl_library.h"
#include "tests/system/programs/gpu_buckets.h"
#include "tests/system/programs/gpu_tensor.h"

namespace {

using gpu::Side;
using gpu::Submit;
using gpu::Sum;
using gpu::Tensor;

// Checks what a call promises about streams: each wait is followed by work on a stream that it has
// ordered.
void CheckOrders() {
  const auto ranks = static_cast<float>(hvd::size());
  Tensor x(1000);
  for (int i = 0; i < 20; ++i) {  // one after the other, without a word from the host
    x.Set(1);
    Must(hvd_wait(Submit(x, Sum("x"))), "wait");
    Must(hvd_wait(Submit(x, Sum("x"))), "wait again");
  }
  x.MustBe(ranks * ranks, "twice summed");
  x.Set(1);
  hvd_handle_t handle = Submit(x, Sum("other stream"));
  Must(hvd_wait_on(handle, Side::Get().stream(2)), "wait on another stream");
  x.MustBe(ranks, "seen from another stream", Side::Get().stream(2));
  Must(hvd_wait(handle), "the handle stays");
  hvd_options_t options = Sum("host");
  options.flags = HVD_WAIT_ON_HOST;
  x.Set(2);
  Must(hvd_allreduce(&x.value, &x.value, &options), "wait on the host");
  x.MustBe(2 * ranks, "seen from a stream that waits for nothing", Side::Get().stream(2));
  Must(hvd_check(), "check");
}

// Told when the bytes are there: on no stream, then.
void CheckTold() {
  hvd_queue_t* queue = nullptr;
  Must(hvd_queue_create(&queue), "queue");
  Tensor x(500);
  x.Set(3);
  hvd_options_t options = Sum("told");
  options.queue = queue;
  options.tag = 77;
  const hvd_handle_t handle = Submit(x, options);
  hvd_completion_t told;
  int32_t count = 0;
  while (count == 0) Must(hvd_queue_next(queue, &told, 1, &count), "next");
  if (told.tag != 77 || told.handle != handle || told.status != HVD_OK) Fail("what was told");
  x.MustBe(3 * static_cast<float>(hvd::size()), "told", Side::Get().stream(2));
  Must(hvd_wait(handle), "wait");
  Must(hvd_queue_destroy(queue), "destroy");
}

// Nobody waits for it but a barrier.
void CheckReleased() {
  Tensor x(4096);
  Must(hvd_allreduce(&x.value, &x.value, nullptr), "all have a GPU");
  x.Set(1);
  Must(hvd_release(Submit(x, Sum("released"))), "release");
  Must(hvd_barrier(nullptr), "a barrier waits for it");
  x.MustBe(static_cast<float>(hvd::size()), "released", Side::Get().stream(2));
}

// Far more than travels at once, and given up without a wait.
void CheckLarge() {
  Tensor x((size_t{9} << 20) + 5, 1);
  for (const float round : {1.0F, 2.0F}) {
    x.Set(round);
    Must(hvd_wait(Submit(x, Sum("large"))), "wait");
    x.MustBe(round * static_cast<float>(hvd::size()), "large");
  }
  x.Set(5);
  hvd_options_t options = Sum("root");
  options.op = HVD_AVERAGE;
  options.root = hvd::size() - 1;
  if (hvd::rank() != options.root) x.Set(0);
  Must(hvd_broadcast(&x.value, &x.value, &options), "broadcast");
  x.MustBe(5, "large broadcast");
  CheckReleased();
}

// Round the ring, and out of order by tag.
void CheckPairs() {
  const int next = (hvd::rank() + 1) % hvd::size(),
            last = (hvd::rank() + hvd::size() - 1) % hvd::size();
  Tensor mine(100), got(100), second(100);
  mine.Set(static_cast<float>(hvd::rank()));
  second.Set(100);
  hvd_handle_t handles[4];
  Must(hvd_recv_async(&got.value, last, 1, nullptr, &handles[0]), "receive");
  Must(hvd_send_async(&second.value, next, 2, nullptr, &handles[1]), "send 2");
  Must(hvd_send_async(&mine.value, next, 1, nullptr, &handles[2]), "send 1");
  Must(hvd_wait(handles[0]), "wait for 1");
  got.MustBe(static_cast<float>(last), "the first");
  Must(hvd_recv_async(&got.value, last, 2, nullptr, &handles[3]), "receive");
  for (const int i : {1, 2, 3}) Must(hvd_wait(handles[i]), "wait");
  got.MustBe(100, "the second");
}

// The others come late, so that the name is pending meanwhile.
void CheckDuplicate(const Tensor& x) {
  const hvd_options_t options = Sum("late");
  std::vector<float> go(1);
  if (hvd::rank() != 0) hvd::allreduce(go, hvd::Op::kSum, "go");
  const hvd_handle_t handle = Submit(x, options);
  if (hvd::rank() == 0) {
    MustRefuse(HVD_ERR_DUPLICATE, hvd_allreduce(&x.value, &x.value, &options),
               "is already pending");
    hvd::allreduce(go, hvd::Op::kSum, "go");
  }
  Must(hvd_wait(handle), "the first");
}

void CheckErrors() {
  Tensor x(10);
  x.Set(1);
  std::vector<float> host(10, 1);
  hvd_tensor_t wrong = x.value;
  wrong.data = host.data();
  MustRefuse(HVD_ERR_INVALID, hvd_allreduce(&wrong, &wrong, nullptr),
             "input.data is no memory of a GPU");
  wrong = x.value;
  wrong.device_id = 9;
  MustRefuse(HVD_ERR_UNSUPPORTED, hvd_allreduce(&wrong, &wrong, nullptr), "there is no GPU 9");
  wrong = x.value;
  wrong.device_type = HVD_CPU;
  wrong.data = host.data();
  MustRefuse(HVD_ERR_INVALID, hvd_allreduce(&x.value, &wrong, nullptr),
             "input lies on GPU 0, output in the CPU's memory");
  const hvd_tensor_t mixed[] = {x.value, wrong};
  MustRefuse(HVD_ERR_INVALID, hvd_grouped_allreduce(mixed, nullptr, 2, nullptr),
             "tensor 0 of the group lies on GPU 0, tensor 1 in the CPU's memory");
  const hvd_options_t options = Sum("mixed");
  const hvd_tensor_t& either = hvd::rank() == 0 ? x.value : wrong;
  MustRefuse(HVD_ERR_MISMATCH, hvd_allreduce(&either, &either, &options),
             "different devices: rank 0");
  const hvd_options_t other = Sum("shapes");
  Tensor y(hvd::rank() == 0 ? 10 : 12);
  MustRefuse(HVD_ERR_MISMATCH, hvd_allreduce(&y.value, &y.value, &other), "different shapes");
  CheckDuplicate(x);
  x.MustBe(static_cast<float>(hvd::size()), "only the last call changed it");
  void* memory = nullptr;
  Must(hvd_alloc_on(1000, HVD_CUDA, 0, &memory), "alloc_on");
  Must(hvd_free(memory), "free");
  MustRefuse(HVD_ERR_INVALID, hvd_free(memory), "hvd_alloc");
}

// The first copy fails on rank 0 (HVD_STAND_IN): everybody is told, by its name.
void CheckFails() {
  Tensor x(10);
  const hvd_status_t status = hvd_allreduce(&x.value, &x.value, nullptr);
  if (status != HVD_ERR_ABORTED) Fail("not aborted: " + std::to_string(status));
  std::printf("%s\n", hvd_last_error());
}

// Rank 0 has joined meanwhile: the others sum a group of more tensors than a signature holds.
void CheckJoined() {
  constexpr int kTensors = 20;
  Tensor first(10);
  first.Set(1);
  Must(hvd_wait(Submit(first, Sum("all"))), "all have a GPU");
  first.MustBe(static_cast<float>(hvd::size()), "of all");
  if (hvd::rank() == 0) return Must(hvd_join(nullptr), "join");
  std::deque<Tensor> tensors;
  std::vector<hvd_tensor_t> group;
  for (int i = 0; i < kTensors; ++i) {
    tensors.emplace_back(static_cast<size_t>(100 + i), static_cast<size_t>(i));
    tensors.back().Set(static_cast<float>(i));
    group.push_back(tensors.back().value);
  }
  const auto others = static_cast<float>(hvd::size() - 1);
  for (int round = 0; round < 3; ++round) {
    const hvd_options_t options = Sum("group");
    Must(hvd_grouped_allreduce(group.data(), group.data(), kTensors, &options), "group");
    for (int i = 0; i < kTensors; ++i) {
      const auto wanted = static_cast<float>(i) * std::pow(others, static_cast<float>(round + 1));
      tensors[static_cast<size_t>(i)].MustBe(wanted, "tensor " + std::to_string(i));
    }
  }
  hvd_options_t average = Sum("average");
  average.op = HVD_AVERAGE;
  average.flags = HVD_AVERAGE_OVER_CONTRIBUTORS;
  first.Set(6);
  Must(hvd_allreduce(&first.value, &first.value, &average), "average");
  first.MustBe(6, "the average of those who are there");
  Must(hvd_join(nullptr), "join");
}

// Work that the GPU has finished is known, though nobody asks: else hvdrun would say that it is
// stalled.
void CheckIdle() {
  Tensor x(10);
  x.Set(1);
  Must(hvd_wait(Submit(x, Sum("first"))), "first");
  for (const int seconds : {2, 3}) {  // hvd's thread goes to sleep; and it is woken
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    x.Set(1);
    Must(hvd_wait(Submit(x, Sum("then"))), "then");
  }
  std::this_thread::sleep_for(std::chrono::seconds(3));  // longer than what counts as a stall
  x.MustBe(static_cast<float>(hvd::size()), "idle");
}

// All ranks refuse it alike, and go on.
void CheckRefused() {
  Tensor x(10);
  x.Set(1);
  if (hvd_allreduce(&x.value, &x.value, nullptr) != HVD_ERR_MISMATCH) Fail("not refused");
  std::printf("%s\n", hvd_last_error());
  x.MustBe(1, "what was refused");
  Must(hvd_barrier(nullptr), "what comes after");
}

// Says when it was, in a clock that all ranks of the host share.
void PrintTime(const char* what) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  std::printf("%s at %lld us\n", what, static_cast<long long>(us));
  std::fflush(stdout);
}

// A death must end it before hvdrun's stop does. With `dies` that of the last rank, when all have
// agreed on a call: the others' GPUs wait for its.
void Loop(bool dies) {
  constexpr int kUntilDeath = 51;  // when all wait on the host
  std::signal(SIGTERM, SIG_IGN);
  Tensor x(100000);
  for (int i = 0;; ++i) {
    x.Set(1);
    hvd_options_t options = Sum("loop");
    if (i % 2 == 1) options.flags = HVD_WAIT_ON_HOST;
    hvd_handle_t handle = 0;
    const bool submitted = hvd_allreduce_async(&x.value, &x.value, &options, &handle) == HVD_OK;
    if (dies && i == kUntilDeath && hvd::rank() == hvd::size() - 1) {
      PrintTime("dies");
      std::raise(SIGKILL);
    }
    const bool ok = submitted && hvd_wait(handle) == HVD_OK;
    if (ok && i % 2 == 1) x.MustBe(static_cast<float>(hvd::size()), "what the host has waited for");
    if (!ok) {
      PrintTime("told");
      std::fprintf(stderr, "loop: %s\n", hvd_last_error());
      std::_Exit(1);  // hvd still has the GPU
    }
    if (i == 5) {
      std::printf("looping\n");
      std::fflush(stdout);
    }
  }
}

// A line "name=value" each. Ends the process with 1 where there is no GPU.
int PrintFound() {
  auto driver = hvd::rt::CudaDriver::Load();
  if (!driver.ok()) {
    std::printf("problem=%s\n", std::string(driver.status().message()).c_str());
    return 1;
  }
  std::printf("driver=%s\ndriver_path=%s\ngpus=%d\n",
              hvd::rt::CudaVersionText(driver->version()).c_str(), driver->path().c_str(),
              driver->devices());
  char name[256] = "";
  hvd::rt::CudaDevice device = 0;
  if (driver->calls().device(&device, 0) == hvd::rt::kCudaSuccess) {
    driver->calls().device_name(name, sizeof name, device);
  }
  std::printf("gpu=%s\n", name);
  const char* named = std::getenv("HVD_NCCL_LIBRARY");
  hvd::rt::NcclPlaces places;
  places.named = named == nullptr ? "" : named;
  const auto nccl = hvd::rt::NcclLibrary::Load(places);
  if (!nccl.ok()) {
    std::printf("nccl_problem=%s\n", std::string(nccl.status().message()).c_str());
    return 0;
  }
  std::printf("nccl=%s\nnccl_path=%s\n", hvd::rt::NcclVersionText(nccl->version()).c_str(),
              nccl->path().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const gpu::Modes modes = {{"orders", [] { CheckOrders(), CheckTold(); }},
                            {"errors", CheckErrors},
                            {"pairs", CheckPairs},
                            {"large", CheckLarge},
                            {"released", CheckReleased},
                            {"fails", CheckFails},
                            {"idle", CheckIdle},
                            {"refused", CheckRefused},
                            {"joined", CheckJoined},
                            {"buckets", gpu::CheckBuckets},
                            {"loop", [] { Loop(false); }},
                            {"dies", [] { Loop(true); }}};
  const std::string asked = argc == 2 ? argv[1] : "";
  if (asked == "found") return PrintFound();
  return gpu::RunMode(modes, asked);
}
