// Provokes everything that can be asked wrongly, with each rank in turn as the one that differs,
// and checks the code, the message (the same on every rank, with what both asked for and who they
// are) and that hvd goes on working. Prints "all errors right" on each rank.
#include <algorithm>
#include <cstring>

#include "tests/system/programs/checks.h"

namespace {

// What a rank asks for; `odd`: it is the one that differs.
struct Ask {
  hvd_options_t options = HVD_OPTIONS_INIT;
  std::string name;
};

struct Mismatch {
  const char* title;
  // Submits and returns the status.
  std::function<hvd_status_t(Ask*, bool odd)> ask;
  const char* what;    // "dtypes"
  std::string common;  // the descriptions
  std::string odd;
};

// Elements in the tensors of a run: few go another way than many.
int64_t extent = 10;
std::string Extent() { return std::to_string(extent); }

hvd_status_t Allreduce(Ask* ask, const char* dtype, std::vector<int64_t> shape) {
  const Array array(*bench::FindDtype(dtype), std::move(shape));
  return hvd_allreduce(array.tensor(), array.tensor(), &ask->options);
}

hvd_status_t Gather(Ask* ask, std::vector<int64_t> shape) {
  const Array array(*bench::FindDtype("float32"), std::move(shape));
  hvd_tensor_t result = HVD_TENSOR_INIT;
  const hvd_status_t status = hvd_allgather(array.tensor(), nullptr, &ask->options, &result);
  hvd_free_result(&result);
  return status;
}

hvd_status_t Alltoall(Ask* ask, std::vector<int64_t> shape) {
  const Array array(*bench::FindDtype("float32"), std::move(shape));
  const std::vector<int64_t> splits(static_cast<size_t>(hvd::size()), 0);
  hvd_tensor_t result = HVD_TENSOR_INIT;
  const hvd_status_t status = hvd_alltoall(array.tensor(), splits.data(), hvd::size(), nullptr,
                                           &ask->options, &result, nullptr);
  hvd_free_result(&result);
  return status;
}

hvd_status_t Scatter(Ask* ask, std::vector<int64_t> shape) {
  const Array array(*bench::FindDtype("float32"), std::move(shape));
  hvd_tensor_t result = HVD_TENSOR_INIT;
  const hvd_status_t status = hvd_reducescatter(array.tensor(), nullptr, &ask->options, &result);
  hvd_free_result(&result);
  return status;
}

hvd_status_t Broadcast(Ask* ask, std::vector<int64_t> shape) {
  const Array array(*bench::FindDtype("float32"), std::move(shape));
  return hvd_broadcast(array.tensor(), array.tensor(), &ask->options);
}

hvd_status_t Grouped(Ask* ask, int tensors, int64_t elements) {
  const Array array(*bench::FindDtype("float32"), {elements});
  const std::vector<hvd_tensor_t> inputs(static_cast<size_t>(tensors), *array.tensor());
  return hvd_grouped_allreduce(inputs.data(), nullptr, tensors, &ask->options);
}

std::vector<Mismatch> Mismatches() {
  const std::string e = Extent(), f = std::to_string(extent + 1);
  const int64_t n = extent;
  return {
      {"dtype", [n](Ask* a, bool odd) { return Allreduce(a, odd ? "float64" : "float32", {n}); },
       "dtypes", "allreduce float32 [" + e + "] average", "allreduce float64 [" + e + "] average"},
      {"kind",
       [n](Ask* a, bool odd) { return odd ? Gather(a, {n}) : Allreduce(a, "float32", {n}); },
       "operations", "allreduce float32 [" + e + "] average", "allgather float32 [" + e + "]"},
      {"barrier",
       [n](Ask* a, bool odd) { return odd ? hvd_barrier(&a->options) : Broadcast(a, {n}); },
       "operations", "broadcast float32 [" + e + "] from rank 0", "barrier"},
      {"shape", [n](Ask* a, bool odd) { return Allreduce(a, "float32", {n + odd}); }, "shapes",
       "[" + e + "] average", "[" + f + "] average"},
      {"adasum shape",
       [n](Ask* a, bool odd) {
         a->options.op = HVD_ADASUM;
         return Allreduce(a, "float32", {n + odd});
       },
       "shapes", "[" + e + "] adasum", "[" + f + "] adasum"},
      {"broadcast shape", [n](Ask* a, bool odd) { return Broadcast(a, {n + odd}); }, "shapes",
       "broadcast float32 [" + e + "]", "broadcast float32 [" + f + "]"},
      {"reduce-scatter shape", [n](Ask* a, bool odd) { return Scatter(a, {n + odd}); }, "shapes",
       "reduce-scatter float32 [" + e + "]", "reduce-scatter float32 [" + f + "]"},
      {"gather dimensions",
       [n](Ask* a, bool odd) {
         return Gather(a, odd ? std::vector<int64_t>{n} : std::vector<int64_t>{n, 2});
       },
       "numbers of dimensions", "allgather float32 [" + e + ",2]", "allgather float32 [" + e + "]"},
      {"gather rows",
       [n](Ask* a, bool odd) {
         return Gather(a, {n, 2 + odd});
       },
       "shapes beyond the first dimension", "[" + e + ",2]", "[" + e + ",3]"},
      {"alltoall dimensions",
       [n](Ask* a, bool odd) {
         return Alltoall(a, odd ? std::vector<int64_t>{n} : std::vector<int64_t>{n, 2});
       },
       "numbers of dimensions", "alltoall float32 [" + e + ",2]", "alltoall float32 [" + e + "]"},
      {"alltoall rows",
       [n](Ask* a, bool odd) {
         return Alltoall(a, {n, 2 + odd});
       },
       "shapes beyond the first dimension", "[" + e + ",2]", "[" + e + ",3]"},
      {"op",
       [n](Ask* a, bool odd) {
         a->options.op = odd ? HVD_MAX : HVD_SUM;
         return Allreduce(a, "float32", {n});
       },
       "reduction ops", "[" + e + "] sum", "[" + e + "] max"},
      {"average",
       [n](Ask* a, bool odd) {
         a->options.flags = odd ? HVD_AVERAGE_OVER_CONTRIBUTORS : 0;
         return Allreduce(a, "float32", {n});
       },
       "reduction ops", "] average", "] average over contributors"},
      {"prescale",
       [n](Ask* a, bool odd) {
         a->options.prescale = odd ? 0.5 : 1;
         return Allreduce(a, "float32", {n});
       },
       "prescale factors", "[" + e + "] average", "average prescale 0.5"},
      {"postscale",
       [n](Ask* a, bool odd) {
         a->options.postscale = odd ? 3 : 2;
         return Scatter(a, {n});
       },
       "postscale factors", "postscale 2", "postscale 3"},
      {"compression",
       [n](Ask* a, bool odd) {
         a->options.compression = odd ? HVD_COMPRESSION_FP16 : HVD_COMPRESSION_BF16;
         return Allreduce(a, "float32", {n});
       },
       "compressions", "compressed to bfloat16", "compressed to float16"},
      {"root",
       [n](Ask* a, bool odd) {
         a->options.root = odd ? 1 : 0;
         return Broadcast(a, {n});
       },
       "roots", "from rank 0", "from rank 1"},
      {"tensors of a group", [n](Ask* a, bool odd) { return Grouped(a, 3 - odd, n); },
       "numbers of tensors", "3 tensors", "2 tensors"},
      {"shapes of a group", [n](Ask* a, bool odd) { return Grouped(a, 2, n + odd); }, "shapes",
       "[" + e + "," + e + "]", "[" + f + "," + f + "]"},
      {"process set",
       [](Ask*, bool odd) {
         const int32_t ranks[] = {odd ? 1 : 0};
         int32_t set = 0;
         return hvd_add_process_set(ranks, 1, &set);
       },
       "process sets", "add process set [0]", "add process set [1]"},
  };
}

// The same text on every rank.
void MustBeSame(const std::string& text, const std::string& what) {
  std::vector<uint8_t> mine(text.begin(), text.end());
  const std::vector<uint8_t> all = hvd::allgather(mine, "compare");
  if (all.size() != mine.size() * static_cast<size_t>(hvd::size())) Fail(what + ": other texts");
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] != mine[i % mine.size()]) Fail(what + ": another text than '" + text + "'");
  }
}

void MustContain(const std::string& text, const std::string& part, const std::string& what) {
  if (text.find(part) == std::string::npos) Fail(what + ": no '" + part + "' in: " + text);
}

void MustStillWork(const std::string& what) {
  for (const size_t count : {size_t{3}, size_t{50000}}) {
    std::vector<float> data(count, 1);
    hvd::allreduce(data, hvd::Op::kSum, "still");
    if (data.back() != static_cast<float>(hvd::size())) Fail(what + ": hvd does not work after it");
  }
}

void CheckMismatch(const Mismatch& mismatch, int odd_rank) {
  const std::string what = std::string(mismatch.title) + " of rank " + std::to_string(odd_rank);
  Ask ask;
  ask.name = std::string("bad ") + mismatch.title;
  ask.options.name = ask.name.c_str();
  const hvd_status_t status = mismatch.ask(&ask, hvd::rank() == odd_rank);
  const std::string text = hvd_last_error();
  if (status != HVD_ERR_MISMATCH) Fail(what + ": " + hvd_status_name(status) + ": " + text);
  MustContain(text, std::string("different ") + mismatch.what, what);
  MustContain(text, mismatch.common, what);
  MustContain(text, mismatch.odd, what);
  MustContain(text, "rank " + std::to_string(odd_rank) + " ", what);
  MustBeSame(text, what);
  MustStillWork(what);
}

void MustRefuse(hvd_status_t wanted, hvd_status_t status, const char* text) {
  if (status != wanted) Fail(std::string("not refused as ") + text + ": " + hvd_last_error());
  MustContain(hvd_last_error(), text, "refused");
}

// What a rank can see by itself: refused at once, whatever the others do.
void CheckArguments() {
  const Array good(*bench::FindDtype("float32"), {4}), scalar(*bench::FindDtype("float32"), {});
  hvd_tensor_t result = HVD_TENSOR_INIT;
  MustRefuse(HVD_ERR_INVALID, hvd_allgather(scalar.tensor(), nullptr, nullptr, &result), "scalar");
  MustRefuse(HVD_ERR_INVALID, hvd_reducescatter(scalar.tensor(), nullptr, nullptr, &result),
             "scalar");
  MustRefuse(HVD_ERR_INVALID,
             hvd_alltoall(scalar.tensor(), nullptr, 0, nullptr, nullptr, &result, nullptr),
             "scalar");
  std::vector<int64_t> splits(static_cast<size_t>(hvd::size()) + 1, 0);
  MustRefuse(HVD_ERR_INVALID,
             hvd_alltoall(good.tensor(), splits.data(), hvd::size() + 1, nullptr, nullptr, &result,
                          nullptr),
             "nsplits is");
  splits[0] = 5;
  MustRefuse(
      HVD_ERR_INVALID,
      hvd_alltoall(good.tensor(), splits.data(), hvd::size(), nullptr, nullptr, &result, nullptr),
      "splits[0] is 5");
  hvd_tensor_t wrong = *good.tensor();
  wrong.dtype = 99;
  MustRefuse(HVD_ERR_INVALID, hvd_allreduce(&wrong, &wrong, nullptr), "unknown dtype 99");
  wrong = *good.tensor();
  wrong.device_type = HVD_CUDA;
  MustRefuse(HVD_ERR_UNSUPPORTED, hvd_allreduce(&wrong, &wrong, nullptr), "CPU's memory");
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.root = hvd::size();
  MustRefuse(HVD_ERR_INVALID, hvd_broadcast(good.tensor(), good.tensor(), &options),
             "is not one of the");
  options = HVD_OPTIONS_INIT;
  options.process_set = 77;
  MustRefuse(HVD_ERR_INVALID, hvd_allreduce(good.tensor(), good.tensor(), &options),
             "process set 77 does not exist");
  MustRefuse(HVD_ERR_INVALID, hvd_remove_process_set(0), "cannot be removed");
  const int32_t twice[] = {0, 0}, outside[] = {hvd::size()};
  int32_t set = 0;
  MustRefuse(HVD_ERR_INVALID, hvd_add_process_set(twice, 2, &set), "there twice");
  MustRefuse(HVD_ERR_INVALID, hvd_add_process_set(outside, 1, &set), "is not one of the");
  MustStillWork("bad arguments");
}

// The last rank comes late, so that the name is pending meanwhile.
void CheckDuplicate() {
  std::vector<float> x(50000, 1), y(50000, 1), go(1);
  const bool late = hvd::rank() == hvd::size() - 1;
  if (late) hvd::allreduce(go, hvd::Op::kSum, "go");
  hvd::Handle first = hvd::allreduce_async(x, hvd::Op::kSum, "twice");
  if (!late) {
    const hvd::internal::Tensor<float> again(y.data(), y.size());
    hvd_options_t options = HVD_OPTIONS_INIT;
    options.name = "twice";
    hvd_handle_t handle = 0;
    const hvd_status_t status = hvd_allreduce_async(again.get(), again.get(), &options, &handle);
    if (status != HVD_ERR_DUPLICATE) Fail("a name that is pending was taken again");
    MustContain(hvd_last_error(), "'twice' is already pending", "duplicate");
    hvd::allreduce(go, hvd::Op::kSum, "go");
  }
  first.wait();
  if (x[49999] != static_cast<float>(hvd::size())) Fail("the first of two is wrong");
  MustStillWork("duplicate");
}

// Twos of all ranks but one.
void CheckReducedWhileJoined(size_t count) {
  const auto here = static_cast<float>(hvd::size() - 1), all = static_cast<float>(hvd::size());
  hvd::Options options;
  const auto check = [&](const char* name, float wanted) {
    std::vector<float> data(count, 2), more(3, 2);
    options.name = name;
    hvd::allreduce(data, options);
    if (std::abs(data.back() - wanted) > 1e-6) Fail(std::string(name) + " while a rank has joined");
    data.assign(count, 2);
    hvd::grouped_allreduce<float>({&data, &more}, options);
    if (std::abs(data[0] - wanted) > 1e-6 || std::abs(more[2] - wanted) > 1e-6) {
      Fail(std::string(name) + " of a group while a rank has joined");
    }
  };
  check("average", 2 * here / all);
  options.average_over_contributors = true;
  check("average over contributors", 2);
  options.average_over_contributors = false;
  options.op = hvd::Op::kSum;
  check("sum", 2 * here);
  options.op = hvd::Op::kMin;
  check("min", 2);
  options.op = hvd::Op::kAdasum;
  check("adasum", 2);
  const std::vector<int32_t> rows(count, hvd::rank());
  const size_t all_rows = hvd::allgather(rows, "rows").size();
  if (all_rows != count * static_cast<size_t>(hvd::size() - 1)) Fail("rows while joined");
  hvd::barrier();
}

// The first and the last rank; 0 when these are all.
int32_t AddOuterSet() {
  const int32_t ranks[] = {0, hvd::size() - 1};
  int32_t set = 0;
  if (hvd::size() > 2) Must(hvd_add_process_set(ranks, 2, &set), "add a set");
  return set;
}

// One that has joined takes part in a set, too.
void CheckSetWhileJoined(int32_t set, int early) {
  if (set == 0 || hvd_process_set_rank(set) < 0) return;
  const bool missing = early == 0 || early == hvd::size() - 1;
  hvd::Options options;
  options.name = "outer";
  options.op = hvd::Op::kSum;
  options.process_set = set;
  for (const size_t count : {4, 50000}) {
    std::vector<float> data(count, 2);
    hvd::allreduce(data, options);
    if (data.back() != (missing ? 2 : 4)) Fail("sum on a set while a rank has joined");
  }
}

// While one rank has joined: what needs everyone fails on the others, and the rest goes on.
void CheckJoined(int early, int32_t set) {
  int32_t last = -1;
  if (hvd::rank() != early) {
    Ask ask;
    ask.name = "joined";
    ask.options.name = ask.name.c_str();
    for (const int64_t n : {int64_t{4}, int64_t{50000}}) {
      using Attempt = std::pair<const char*, std::function<hvd_status_t()>>;
      for (const auto& [kind, attempt] :
           {Attempt{"broadcast", [&] { return Broadcast(&ask, {n}); }},
            {"reduce-scatter", [&] { return Scatter(&ask, {n}); }},
            {"alltoall", [&] { return Alltoall(&ask, {n}); }}}) {
        if (attempt() != HVD_ERR_MISMATCH) Fail(std::string(kind) + " while a rank has joined");
        MustContain(hvd_last_error(), "1 of " + std::to_string(hvd::size()) + " ranks have joined",
                    kind);
      }
      CheckReducedWhileJoined(static_cast<size_t>(n));
    }
    CheckSetWhileJoined(set, early);
  }
  Must(hvd_join(&last), "join");
  if (last < 0 || last >= hvd::size() || (hvd::size() > 1 && last == early)) {
    Fail("the last rank to join is " + std::to_string(last));
  }
  MustStillWork("join");
}

// A set from the start: rank 0 alone.
void InitWithSet() {
  const int32_t first = 0;
  const int32_t* sets[] = {&first};
  const int32_t sizes[] = {1};
  hvd_init_options_t options = HVD_INIT_OPTIONS_INIT;
  options.process_sets = sets;
  options.process_set_sizes = sizes;
  options.process_set_count = -1;
  MustRefuse(HVD_ERR_INVALID, hvd_init(&options), "process_set_count");
  options.process_set_count = 1;
  const int32_t nobody = 1 << 20;
  const int32_t* of_nobody[] = {&nobody};
  options.process_sets = of_nobody;
  MustRefuse(HVD_ERR_INVALID, hvd_init(&options), "is not one of the");
  if (hvd_is_initialized() != 0) Fail("initialized without its set");
  options.process_sets = sets;
  Must(hvd_init(&options), "init");
  if (hvd_process_set_size(1) != 1 || hvd_process_set_rank(1) != (hvd::rank() == 0 ? 0 : -1)) {
    Fail("the set given to hvd_init is not there");
  }
}

void CheckAll() {
  CheckArguments();
  for (const int64_t n : {10, 40000}) {
    extent = n;
    for (const Mismatch& mismatch : Mismatches()) {
      for (int odd = 0; odd < hvd::size(); ++odd) CheckMismatch(mismatch, odd);
    }
  }
  CheckDuplicate();
}

}  // namespace

int main(int argc, char** argv) {
  // joined: only what is wrong while ranks have joined.
  const bool joined = argc > 1 && std::strcmp(argv[1], "joined") == 0;
  try {
    std::vector<float> x(3);
    const hvd::internal::Tensor<float> tensor(x.data(), x.size());
    MustRefuse(HVD_ERR_NOT_INITIALIZED, hvd_allreduce(tensor.get(), tensor.get(), nullptr),
               "hvd_init");
    InitWithSet();
    const hvd::Session session;  // shuts down
    const int32_t outer = joined ? AddOuterSet() : 0;
    for (int early = 0; joined && early < hvd::size(); ++early) CheckJoined(early, outer);
    if (!joined) CheckAll();
    std::printf("all errors right on rank %d of %d\n", hvd::rank(), hvd::size());
  } catch (const hvd::Error& error) {
    std::fprintf(stderr, "rank %d: errors: %s\n", hvd::rank(), error.what());
    return 1;
  }
  return 0;
}
