// SPDX-License-Identifier: Apache-2.0
// What ranks ask for differently, with each of them in turn as the one that differs: the same error
// everywhere, which says what both asked for and who they are.
#include "tests/system/programs/errors.h"

namespace {

struct Mismatch {
  const char* title;
  // Submits and returns the status; `odd`: this rank is the one that differs.
  std::function<hvd_status_t(Ask*, bool odd)> ask;
  const char* what;    // "dtypes"
  std::string common;  // the descriptions
  std::string odd;
};

// Elements in the tensors of a run: few go another way than many.
int64_t extent = 10;
std::string Extent() { return std::to_string(extent); }

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

}  // namespace

void CheckMismatches() {
  for (const int64_t n : {10, 40000}) {
    extent = n;
    for (const Mismatch& mismatch : Mismatches()) {
      for (int odd = 0; odd < hvd::size(); ++odd) CheckMismatch(mismatch, odd);
    }
  }
}
