// SPDX-License-Identifier: Apache-2.0
// in_place: allgathers whose input is this rank's rows of the output, and reduce-scatters whose
// output is this rank's rows of the input: of all sizes, in ordinary memory and in hvd's, with even
// and uneven rows, alone and in groups. Then one that lies wrong.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "hvd/hvd.h"

namespace {

[[noreturn]] void Wrong(const std::string& what) {
  std::fprintf(stderr, "rank %d: %s (%s)\n", hvd_rank(), what.c_str(), hvd_last_error());
  std::_Exit(3);
}

// Rows of `width` floats, of which rank r has so many; all of them in one piece of memory.
struct Table {
  Table(bool even, int64_t about, int64_t width, bool arena)
      : width(width), arena(arena), text(std::to_string(about) + (even ? " even" : " uneven")) {
    for (int r = 0; r < hvd_size(); ++r) {
      rows.push_back(even ? about : about + r % 3);
      if (r < hvd_rank()) before += rows.back();
      all += rows.back();
    }
    const size_t bytes = static_cast<size_t>(all * width) * sizeof(float);
    void* memory = nullptr;
    if (arena && hvd_alloc(bytes, &memory) != HVD_OK) Wrong("hvd_alloc");
    data = static_cast<float*>(arena ? memory : std::malloc(bytes));
  }
  ~Table() {
    if (arena) {
      hvd_free(data);
    } else {
      std::free(data);
    }
  }
  Table(const Table&) = delete;

  int64_t mine() const { return rows[hvd_rank()]; }
  float* own() const { return data + before * width; }
  static float Value(int rank, int64_t at) { return static_cast<float>(rank * 64 + at % 61); }

  const int64_t width;
  const bool arena;
  const std::string text;
  std::vector<int64_t> rows;
  int64_t before = 0, all = 0;
  float* data = nullptr;
};

struct Tensor {
  Tensor(float* data, int64_t rows, int64_t width) : shape{rows, width} {
    value.data = data;
    value.shape = shape;
    value.ndim = 2;
  }
  Tensor(const Tensor&) = delete;
  int64_t shape[2];
  hvd_tensor_t value = HVD_TENSOR_INIT;
};

void CheckGathered(const Table& t, const char* how) {
  int64_t at = 0;
  for (int rank = 0; rank < hvd_size(); ++rank) {
    for (const int64_t end = at + t.rows[rank] * t.width; at < end; ++at) {
      if (t.data[at] != Table::Value(rank, at)) Wrong(std::string(how) + " " + t.text);
    }
  }
}

void PutOwn(const Table& t) {
  std::memset(t.data, 0xff, static_cast<size_t>(t.all * t.width) * sizeof(float));
  const int64_t begin = t.before * t.width;
  for (int64_t i = begin; i < begin + t.mine() * t.width; ++i) {
    t.data[i] = Table::Value(hvd_rank(), i);
  }
}

void Gather(const Table& t) {
  for (int round = 0; round < 3; ++round) {
    PutOwn(t);
    const Tensor in(t.own(), t.mine(), t.width), out(t.data, t.all, t.width);
    hvd_options_t options = HVD_OPTIONS_INIT;
    const std::string name = "gather " + t.text + (t.arena ? " arena" : "");
    options.name = name.c_str();
    if (hvd_allgather(&in.value, &out.value, &options, nullptr) != HVD_OK) Wrong(name);
    CheckGathered(t, "gather");
  }
}

// An even table's: all ranks must have the same rows of input.
void Scatter(const Table& t) {
  for (int round = 0; round < 3; ++round) {
    for (int64_t i = 0; i < t.all * t.width; ++i) t.data[i] = Table::Value(hvd_rank(), i);
    const Tensor in(t.data, t.all, t.width), out(t.own(), t.mine(), t.width);
    hvd_options_t options = HVD_OPTIONS_INIT;
    const std::string name = "scatter " + t.text + (t.arena ? " arena" : "");
    options.name = name.c_str();
    options.op = HVD_SUM;
    if (hvd_reducescatter(&in.value, &out.value, &options, nullptr) != HVD_OK) Wrong(name);
    const int64_t begin = t.before * t.width, end = begin + t.mine() * t.width;
    for (int64_t i = 0; i < t.all * t.width; ++i) {
      float sum = 0;
      for (int r = 0; r < hvd_size(); ++r) sum += Table::Value(r, i);
      const bool own = i >= begin && i < end;
      if (t.data[i] != (own ? sum : Table::Value(hvd_rank(), i))) Wrong(name + " is wrong");
    }
  }
}

void Group(bool arena) {
  const Table a(true, 5, 3, arena), b(false, 700, 11, arena);
  PutOwn(a);
  PutOwn(b);
  const Tensor in_a(a.own(), a.mine(), 3), in_b(b.own(), b.mine(), 11);
  const Tensor out_a(a.data, a.all, 3), out_b(b.data, b.all, 11);
  const hvd_tensor_t inputs[2] = {in_a.value, in_b.value};
  const hvd_tensor_t outputs[2] = {out_a.value, out_b.value};
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.name = arena ? "group arena" : "group";
  if (hvd_grouped_allgather(inputs, outputs, 2, &options, nullptr) != HVD_OK) Wrong("group");
  CheckGathered(a, "group");
  CheckGathered(b, "group");
}

// Only the exchange can tell, where rows are uneven: the rank is told, the others have theirs.
void LiesWrong() {
  if (hvd_size() < 3) return;
  for (const int64_t about : {2, 50000}) {
    const Table t(false, about, 2, false);
    PutOwn(t);
    const bool wrong = hvd_rank() == 1;
    const Tensor in(wrong ? t.own() + 2 : t.own(), t.mine(), 2), out(t.data, t.all, 2);
    hvd_options_t options = HVD_OPTIONS_INIT;
    options.name = "wrong";
    const hvd_status_t status = hvd_allgather(&in.value, &out.value, &options, nullptr);
    if (status != (wrong ? HVD_ERR_MISMATCH : HVD_OK)) Wrong("one that lies wrong");
    if (wrong && std::strstr(hvd_last_error(), "bytes from its beginning") == nullptr) {
      Wrong("its words");
    }
  }
  if (hvd_barrier(nullptr) != HVD_OK) Wrong("the engine is gone");
}

}  // namespace

int main() {
  if (hvd_init(nullptr) != HVD_OK) Wrong("init");
  for (const bool arena : {false, true}) {
    for (const int64_t about : {1, 40, 1000, 20000, 150000}) {
      Gather(Table(true, about, 3, arena));
      Gather(Table(false, about, 3, arena));
      Scatter(Table(true, about, 3, arena));
    }
    Group(arena);
  }
  LiesWrong();
  hvd_shutdown();
}
