// SPDX-License-Identifier: Apache-2.0
// results: the caller's own memory for results whose rows only the exchange tells (result_fn):
// small ones and large ones, alone and in groups, blocking and not. Then a rank that gives none: it
// is told, the others have their results. And the library's own results: whole cache lines, which
// any thread gives back, also one of hvd's, and after the shutdown.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "hvd/hvd.h"

namespace {

[[noreturn]] void Wrong(const std::string& what) {
  std::fprintf(stderr, "rank %d: %s (%s)\n", hvd_rank(), what.c_str(), hvd_last_error());
  std::_Exit(3);
}
void Need(bool holds, const std::string& what) {
  if (!holds) Wrong(what);
}

// The results that a framework would allocate, by the tensor's index.
struct Results {
  bool gives = true;
  std::vector<std::vector<int64_t>> shapes = std::vector<std::vector<int64_t>>(3);
  std::vector<std::unique_ptr<float[]>> data = std::vector<std::unique_ptr<float[]>>(3);
};

void* Give(void* arg, const int64_t* shape, int32_t ndim, int32_t dtype, int32_t index) {
  auto* results = static_cast<Results*>(arg);
  Need(dtype == HVD_FLOAT32, "asked for another type");
  Need(results->shapes.at(index).empty(), "asked twice");
  results->shapes[index].assign(shape, shape + ndim);
  if (!results->gives) return nullptr;
  int64_t elements = 1;
  for (int32_t d = 0; d < ndim; ++d) elements *= shape[d];
  results->data[index] = std::make_unique<float[]>(elements);
  return results->data[index].get();
}

hvd_options_t OptionsFor(Results* results, const std::string& name) {
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.name = name.c_str();
  options.result_fn = Give;
  options.result_arg = results;
  return options;
}

// A tensor of `rows` rows of two, with the rank's number in each.
struct Rows {
  explicit Rows(int64_t rows) : shape{rows, 2}, data(2 * rows, static_cast<float>(hvd_rank())) {
    value.data = data.data();
    value.shape = shape;
    value.ndim = 2;
  }
  Rows(const Rows&) = delete;
  int64_t shape[2];
  std::vector<float> data;
  hvd_tensor_t value = HVD_TENSOR_INIT;
};

int64_t RowsOf(int rank, int64_t about) { return about + rank; }

void CheckGathered(const Results& results, int index, int64_t about) {
  int64_t at = 0;
  for (int rank = 0; rank < hvd_size(); ++rank) {
    for (const int64_t end = at + 2 * RowsOf(rank, about); at < end; ++at) {
      Need(results.data[index][at] == static_cast<float>(rank), "a wrong row");
    }
  }
  Need(results.shapes[index] == std::vector<int64_t>{at / 2, 2}, "a wrong shape");
}

void Gathers(int64_t about) {
  const std::string name = "gather " + std::to_string(about);
  for (int round = 0; round < 3; ++round) {
    Results results;
    const Rows mine(RowsOf(hvd_rank(), about));
    const hvd_options_t options = OptionsFor(&results, name);
    hvd_tensor_t nothing = HVD_TENSOR_INIT;
    Need(hvd_allgather(&mine.value, nullptr, &options, &nothing) == HVD_OK, name);
    Need(nothing.data == nullptr, "a result of the library's as well");
    CheckGathered(results, 0, about);

    Results later;
    const hvd_options_t later_options = OptionsFor(&later, name);
    hvd_handle_t handle = 0;
    Need(hvd_allgather_async(&mine.value, nullptr, &later_options, &handle) == HVD_OK, name);
    Need(hvd_wait(handle) == HVD_OK, name);
    CheckGathered(later, 0, about);
  }
}

void Scatters(int64_t about) {
  Results results;
  const Rows mine(about * hvd_size());
  hvd_options_t options = OptionsFor(&results, "scatter " + std::to_string(about));
  options.op = HVD_MAX;
  hvd_tensor_t nothing = HVD_TENSOR_INIT;
  Need(hvd_reducescatter(&mine.value, nullptr, &options, &nothing) == HVD_OK, "scatter");
  Need(results.shapes[0] == std::vector<int64_t>{about, 2}, "a wrong scattered shape");
  for (int64_t i = 0; i < 2 * about; ++i) {
    Need(results.data[0][i] == static_cast<float>(hvd_size() - 1), "a wrong scattered value");
  }
}

// One row more to each next rank.
void Alltoalls(int64_t about) {
  std::vector<int64_t> splits, received(hvd_size());
  int64_t all = 0;
  for (int rank = 0; rank < hvd_size(); ++rank) splits.push_back(RowsOf(rank, about));
  for (const int64_t rows : splits) all += rows;
  Results results;
  const Rows mine(all);
  const hvd_options_t options = OptionsFor(&results, "alltoall " + std::to_string(about));
  hvd_handle_t handle = 0;
  Need(hvd_alltoall_async(&mine.value, splits.data(), hvd_size(), nullptr, &options, &handle) ==
           HVD_OK,
       "alltoall");
  Need(hvd_wait_alltoall(handle, nullptr, received.data()) == HVD_OK, "wait_alltoall");
  const int64_t rows = RowsOf(hvd_rank(), about);
  Need(results.shapes[0] == std::vector<int64_t>{rows * hvd_size(), 2}, "a wrong shape");
  for (int rank = 0; rank < hvd_size(); ++rank) {
    Need(received[rank] == rows, "wrong splits");
    Need(results.data[0][2 * rows * rank] == static_cast<float>(rank), "a wrong sender");
  }
}

void Groups(int64_t about) {
  Results results;
  const Rows a(RowsOf(hvd_rank(), about)), b(RowsOf(hvd_rank(), 1)), c(RowsOf(hvd_rank(), 0));
  const hvd_tensor_t inputs[] = {a.value, b.value, c.value};
  const hvd_options_t options = OptionsFor(&results, "group " + std::to_string(about));
  hvd_handle_t handle = 0;
  Need(hvd_grouped_allgather_async(inputs, nullptr, 3, &options, &handle) == HVD_OK, "group");
  Need(hvd_wait(handle) == HVD_OK, "wait for the group");
  CheckGathered(results, 0, about);
  CheckGathered(results, 1, 1);
  CheckGathered(results, 2, 0);
}

// One rank after the other has no memory.
void NoMemory(int64_t about) {
  for (int without = 0; without < hvd_size(); ++without) {
    Results results, scattered;
    results.gives = scattered.gives = hvd_rank() != without;
    const hvd_status_t wanted = results.gives ? HVD_OK : HVD_ERR_UNSUPPORTED;
    const Rows mine(RowsOf(hvd_rank(), about)), whole(about * hvd_size());
    const hvd_tensor_t inputs[] = {mine.value, mine.value};
    const hvd_options_t options = OptionsFor(&results, "none " + std::to_string(about));
    hvd_handle_t handle = 0;
    Need(hvd_grouped_allgather_async(inputs, nullptr, 2, &options, &handle) == HVD_OK, "none");
    Need(hvd_wait(handle) == wanted, "the rank without memory is not told, or another is");
    if (!results.gives) {
      Need(std::strstr(hvd_last_error(), "result_fn gave no memory") != nullptr, "its words");
    } else {
      CheckGathered(results, 0, about);
      CheckGathered(results, 1, about);
    }
    const hvd_options_t other = OptionsFor(&scattered, "none " + std::to_string(about));
    Need(hvd_reducescatter_async(&whole.value, nullptr, &other, &handle) == HVD_OK, "none");
    Need(hvd_wait(handle) == wanted, "the rank without memory is not told, or another is");
  }
}

// Takes them over; whoever calls GiveBack gives them back.
class OwnResults {
 public:
  void Take(const hvd_tensor_t& result, int64_t rows) {
    Need(result.data != nullptr && result.shape != nullptr, "no result of the library's");
    Need(reinterpret_cast<uintptr_t>(result.data) % 64 == 0, "a result that is not aligned");
    Need(result.ndim == 2 && result.shape[0] == rows && result.shape[1] == 2, "a wrong shape");
    std::memset(result.data, 1, 2 * sizeof(float) * rows);  // it is this rank's
    all_.push_back(result);
  }
  void GiveBack() {
    for (hvd_tensor_t& result : all_) {
      hvd_free_result(&result);
      Need(result.data == nullptr && result.shape == nullptr, "not given back");
      hvd_free_result(&result);  // does nothing
    }
    all_.clear();
    are_back_ = true;
  }
  void AwaitBack() const {
    while (!are_back_) std::this_thread::yield();
  }

 private:
  std::vector<hvd_tensor_t> all_;
  std::atomic<bool> are_back_{false};
};

void TakeAll(int64_t about, OwnResults* results) {
  const int64_t size = hvd_size(), all = size * about + size * (size - 1) / 2;
  const Rows mine(RowsOf(hvd_rank(), about)), whole(about * size);
  hvd_tensor_t result = HVD_TENSOR_INIT, grouped[2];
  Need(hvd_allgather(&mine.value, nullptr, nullptr, &result) == HVD_OK, "own gather");
  results->Take(result, all);
  Need(hvd_reducescatter(&whole.value, nullptr, nullptr, &result) == HVD_OK, "own scatter");
  results->Take(result, about);
  Need(hvd_alltoall(&whole.value, nullptr, 0, nullptr, nullptr, &result, nullptr) == HVD_OK,
       "own alltoall");
  results->Take(result, about * size);
  const hvd_tensor_t inputs[] = {mine.value, mine.value};
  Need(hvd_grouped_allgather(inputs, nullptr, 2, nullptr, grouped) == HVD_OK, "own group");
  for (const hvd_tensor_t& each : grouped) results->Take(each, all);
}

void GivenBackAnywhere(int64_t about) {
  OwnResults here, in_callback;
  TakeAll(about, &here);
  std::thread([&] { here.GiveBack(); }).join();
  TakeAll(about, &in_callback);
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.done_arg = &in_callback;
  options.done = [](void* arg, hvd_handle_t, hvd_status_t) {
    static_cast<OwnResults*>(arg)->GiveBack();
  };
  hvd_handle_t handle = 0;
  Need(hvd_barrier_async(&options, &handle) == HVD_OK, "barrier_async");
  Need(hvd_wait(handle) == HVD_OK, "wait");
  in_callback.AwaitBack();
  void* memory = nullptr;
  Need(hvd_alloc(1 + static_cast<size_t>(about), &memory) == HVD_OK, "alloc");
  Need(reinterpret_cast<uintptr_t>(memory) % 64 == 0, "memory that is not aligned");
  std::thread([&] { Need(hvd_free(memory) == HVD_OK, "free on another thread"); }).join();
}

void Refusals() {
  Results results;
  const Rows mine(4), out(4);
  const hvd_options_t options = OptionsFor(&results, "refused");
  Need(hvd_allreduce(&mine.value, &out.value, &options) == HVD_ERR_INVALID, "of an allreduce");
  Need(hvd_allgather(&mine.value, &out.value, &options, nullptr) == HVD_ERR_INVALID,
       "with an output as well");
  Need(std::strstr(hvd_last_error(), "give one") != nullptr, "its words");
}

}  // namespace

int main() {
  if (hvd_init(nullptr) != HVD_OK) Wrong("init");
  for (const int64_t about : {1, 50, 3000, 200000}) {
    Gathers(about);
    Scatters(about);
    Alltoalls(about);
    Groups(about);
    NoMemory(about);
    GivenBackAnywhere(about);
  }
  Refusals();
  OwnResults later;
  TakeAll(3, &later);
  hvd_shutdown();
  std::thread([&] { later.GiveBack(); }).join();
}
