// SPDX-License-Identifier: Apache-2.0
// What every operator does: reads its arguments, shows its tensors to libhvd, tells what went
// wrong.
#pragma once

#include <hvd/hvd.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hvd {

using torch::stable::Tensor;
using Shape = std::vector<int64_t>;

// An operator's arguments, in the order of its schema. A caller owns each one that it has read, so
// all are to be read before anything is checked.
class Arguments {
 public:
  explicit Arguments(StableIValue* stack) : next_(stack) {}

  template <typename T>
  T Next() {
    return torch::stable::detail::to<T>(*next_++);
  }
  // Returns -1 for a number that does not fit, which libhvd refuses with its own words.
  int32_t NextInt32();

 private:
  StableIValue* next_;
};

class Options {
 public:
  // `kind`: what names begin with, as in the Python package: "allreduce.".
  explicit Options(const char* kind) : kind_(kind) {}

  void ReadReduction(Arguments* arguments);   // op, both factors, compression, set, name
  void ReadRoot(Arguments* arguments);        // root, set, name
  void ReadSetAndName(Arguments* arguments);  // set, name

  // Lets `give` give the results' memory: see hvd_options_t::result_fn.
  void SetResults(decltype(hvd_options_t::result_fn) give, void* arg);

  const hvd_options_t* Get();
  int32_t process_set() const { return values_.process_set; }

 private:
  const char* kind_;
  std::string name_;
  hvd_options_t values_ = HVD_OPTIONS_INIT;
};

// Throws what the calling thread's last failing call has left: std::runtime_error, the one that all
// torches hand on. The text begins with the status' name, by which Python finds hvd's own
// exception.
void Check(hvd_status_t status);
// Throws HVD_ERR_INVALID.
[[noreturn]] void Refuse(const std::string& why);

// The same values without gaps; the tensor itself where it has none.
Tensor Dense(const Tensor& tensor);
// Throws where the tensor has gaps: it is to be written in place.
void CheckDense(const Tensor& tensor);
// The tensor must have no gaps, and outlive the description.
hvd_tensor_t Describe(const Tensor& tensor);

Shape ShapeOf(const Tensor& tensor);
// The shape with so many rows.
Shape WithRows(Shape shape, int64_t rows);
// Not initialized; of like's type, and on its device.
Tensor NewTensor(const Tensor& like, const Shape& shape);
// In host memory.
Tensor NewInt32s(const std::vector<int64_t>& values);
Tensor NewInt64s(const std::vector<int64_t>& values);
// The same values where `like` lies; in host memory. Copies only where it must.
Tensor Beside(const Tensor& like, const Tensor& tensor);
Tensor OnHost(const Tensor& tensor);

// Tensors that are described in a row, as groups are.
class Row {
 public:
  void Add(const Tensor& tensor);

  const hvd_tensor_t* descriptions() const { return descriptions_.data(); }
  int32_t size() const { return static_cast<int32_t>(tensors_.size()); }
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
  std::vector<hvd_tensor_t> descriptions_;
};

// Tensors that are made when libhvd knows how many rows come, during the call whose `options` these
// are. With `rows` each has so many: zeros follow what there is.
class Results {
 public:
  // One for each of `likes`, of its type. `options` must live as long.
  Results(std::vector<Tensor> likes, Options* options, std::optional<int64_t> rows = std::nullopt);
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;

  // After the call. Throws where more rows came than were wanted.
  Tensor At(size_t index) const;
  std::vector<Tensor> All() const;

 private:
  struct Made {
    std::optional<Tensor> tensor;
    int64_t rows = 0;  // that came
  };
  // hvd_options_t::result_fn. From any thread of libhvd's; null where torch has no memory.
  static void* Give(void* results, const int64_t* shape, int32_t ndim, int32_t dtype,
                    int32_t index) noexcept;
  Tensor Make(size_t index, const Shape& shape);

  const std::vector<Tensor> likes_;
  const std::optional<int64_t> rows_;
  // The caller's, where the tensors are on a GPU: theirs is the memory that is made.
  void* stream_ = nullptr;
  std::vector<Made> made_;
};

}  // namespace hvd
