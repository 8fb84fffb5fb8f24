// SPDX-License-Identifier: Apache-2.0
#include "tests/system/programs/arena_moves.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "hvd/hvd.hpp"

namespace {

constexpr int64_t kRows = 5003;  // of two floats; not a multiple of ranks

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "rank %d: %s: %s\n", hvd::rank(), what.c_str(), hvd_last_error());
  std::exit(1);
}

float Mine(int rank, size_t i, int turn) {
  return static_cast<float>((i + turn) % 11 + 100 * rank);
}

// One call whose tensors, two floats a row, lie in the arena.
class Move {
 public:
  Move(const std::string& name, int64_t rows, int64_t output_rows)
      : name_(name),
        input_(static_cast<size_t>(2 * rows)),
        output_(static_cast<size_t>(2 * output_rows)),
        input_shape_{rows, 2},
        output_shape_{output_rows, 2} {}
  virtual ~Move() = default;

  void Submit(int turn) {
    for (size_t i = 0; i < input_.size(); ++i) input_[i] = Mine(hvd::rank(), i, turn);
    std::fill(output_.begin(), output_.end(), -1.0f);
    hvd_options_t options = HVD_OPTIONS_INIT;
    options.name = name_.c_str();
    if (Start(Tensor(&input_, input_shape_), Tensor(&output_, output_shape_), options) != HVD_OK) {
      Fail(name_);
    }
  }
  void Wait(int turn) {
    if (hvd_wait(handle_) != HVD_OK) Fail(name_);
    for (size_t i = 0; i < output_.size(); ++i) {
      if (output_[i] != Wanted(i, turn)) Fail(name_ + ": element " + std::to_string(i));
    }
    for (size_t i = 0; i < input_.size(); ++i) {
      if (input_[i] != Mine(hvd::rank(), i, turn)) Fail(name_ + " wrote its input");
    }
  }

 protected:
  virtual hvd_status_t Start(const hvd_tensor_t& input, const hvd_tensor_t& output,
                             hvd_options_t options) = 0;
  virtual float Wanted(size_t i, int turn) const = 0;
  hvd_handle_t handle_ = 0;

 private:
  static hvd_tensor_t Tensor(hvd::Buffer<float>* data, const int64_t* shape) {
    hvd_tensor_t tensor = HVD_TENSOR_INIT;
    tensor.data = data->data();
    tensor.shape = shape;
    tensor.ndim = 2;
    tensor.dtype = HVD_FLOAT32;
    return tensor;
  }

  const std::string name_;
  hvd::Buffer<float> input_, output_;
  const int64_t input_shape_[2], output_shape_[2];
};

class Broadcast : public Move {
 public:
  Broadcast() : Move("moves.broadcast", kRows, kRows) {}

 private:
  hvd_status_t Start(const hvd_tensor_t& input, const hvd_tensor_t& output,
                     hvd_options_t options) override {
    options.root = hvd::size() - 1;
    return hvd_broadcast_async(&input, &output, &options, &handle_);
  }
  float Wanted(size_t i, int turn) const override { return Mine(hvd::size() - 1, i, turn); }
};

// Rank r brings (r + 1) * kRows rows.
class Allgather : public Move {
 public:
  Allgather() : Move("moves.gather", kRows * (hvd::rank() + 1), RowsBefore(hvd::size())) {}
  static int64_t RowsBefore(int rank) { return kRows * rank * (rank + 1) / 2; }

 private:
  hvd_status_t Start(const hvd_tensor_t& input, const hvd_tensor_t& output,
                     hvd_options_t options) override {
    return hvd_allgather_async(&input, &output, &options, &handle_);
  }
  float Wanted(size_t i, int turn) const override {
    int rank = 0;
    while (static_cast<int64_t>(i) >= 2 * RowsBefore(rank + 1)) ++rank;
    return Mine(rank, i - static_cast<size_t>(2 * RowsBefore(rank)), turn);
  }
};

int64_t ScatteredBegin(int rank) {
  return kRows / hvd::size() * rank + std::min<int64_t>(rank, kRows % hvd::size());
}

class ReduceScatter : public Move {
 public:
  ReduceScatter()
      : Move("moves.scatter", kRows,
             ScatteredBegin(hvd::rank() + 1) - ScatteredBegin(hvd::rank())) {}

 private:
  hvd_status_t Start(const hvd_tensor_t& input, const hvd_tensor_t& output,
                     hvd_options_t options) override {
    options.op = HVD_SUM;
    return hvd_reducescatter_async(&input, &output, &options, &handle_);
  }
  float Wanted(size_t i, int turn) const override {
    const size_t at = static_cast<size_t>(2 * ScatteredBegin(hvd::rank())) + i;
    float sum = 0;
    for (int rank = 0; rank < hvd::size(); ++rank) sum += Mine(rank, at, turn);
    return sum;
  }
};

// Every rank sends (p + 1) * kRows rows to rank p, and one row goes nowhere.
class Alltoall : public Move {
 public:
  Alltoall()
      : Move("moves.alltoall", RowsTo(hvd::size()) + 1, kRows * (hvd::rank() + 1) * hvd::size()) {
    for (int peer = 0; peer < hvd::size(); ++peer) splits_.push_back(kRows * (peer + 1));
  }
  static int64_t RowsTo(int rank) { return kRows * rank * (rank + 1) / 2; }

 private:
  hvd_status_t Start(const hvd_tensor_t& input, const hvd_tensor_t& output,
                     hvd_options_t options) override {
    return hvd_alltoall_async(&input, splits_.data(), hvd::size(), &output, &options, &handle_);
  }
  float Wanted(size_t i, int turn) const override {
    const auto each = static_cast<size_t>(2 * splits_[static_cast<size_t>(hvd::rank())]);
    const auto from = static_cast<int>(i / each);
    return Mine(from, static_cast<size_t>(2 * RowsTo(hvd::rank())) + i % each, turn);
  }

  std::vector<int64_t> splits_;
};

// Rank 0's output has a row too few: it alone gets an error, and nothing beside its output changes.
void CheckNoRoom() {
  const bool is_short = hvd::rank() == 0;
  hvd::Buffer<float> input(2 * kRows), output(2 * kRows * hvd::size());
  std::fill(input.begin(), input.end(), 1.0f);
  std::fill(output.begin(), output.end(), -1.0f);
  const int64_t input_shape[] = {kRows, 2};
  const int64_t output_shape[] = {kRows * hvd::size() - (is_short ? 1 : 0), 2};
  hvd_tensor_t from = HVD_TENSOR_INIT, to = HVD_TENSOR_INIT;
  from.dtype = to.dtype = HVD_FLOAT32;
  from.ndim = to.ndim = 2;
  from.data = input.data();
  from.shape = input_shape;
  to.data = output.data();
  to.shape = output_shape;
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.name = "moves.short";
  const hvd_status_t status = hvd_allgather(&from, &to, &options, nullptr);
  if (status != (is_short ? HVD_ERR_MISMATCH : HVD_OK)) Fail("allgather without room");
  if (output[output.size() - 1] != (is_short ? -1.0f : 1.0f)) Fail("allgather without room wrote");
}

}  // namespace

void CheckMoves() {
  std::vector<std::unique_ptr<Move>> moves;
  moves.push_back(std::make_unique<Broadcast>());
  moves.push_back(std::make_unique<Allgather>());
  moves.push_back(std::make_unique<ReduceScatter>());
  moves.push_back(std::make_unique<Alltoall>());
  std::mt19937 random(static_cast<unsigned>(hvd::rank()));
  std::vector<size_t> order = {0, 1, 2, 3};
  for (int turn = 0; turn < 10; ++turn) {
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t i : order) moves[i]->Submit(turn);
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t i : order) moves[i]->Wait(turn);
  }
  CheckNoRoom();
}
