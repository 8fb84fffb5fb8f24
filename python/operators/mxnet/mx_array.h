// SPDX-License-Identifier: Apache-2.0
// An NDArray of MXNet's, as an operation of its engine holds and reads it.
#pragma once

#include <hvd/hvd.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "python/operators/mxnet/mx_api.h"

namespace hvd::mx {

// hvd's type for one of MXNet's.
std::optional<hvd_dtype_t> DtypeOf(int type);

// Owns an NDArray. Arrays that are copied from one another are the same one to MXNet: the memory
// lives as long as one of them. Any thread may make and destroy it.
class Array {
 public:
  // The same array as `handle`'s, which may go then.
  explicit Array(NDArrayHandle handle);
  // A new one of that shape and type in the context of `like`, not filled.
  Array(const std::vector<int64_t>& shape, int type, const Array& like);
  ~Array();
  Array(Array&& other) noexcept;
  Array& operator=(Array&&) = delete;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  // Empty, or why hvd cannot take it.
  std::string Problem() const;
  int type() const;
  Context context() const;
  std::vector<int64_t> shape() const;
  NDArrayHandle handle() const { return handle_; }
  // Returns the chunk that it is a part of; views of one array have the same, and the engine orders
  // what is done to it.
  void* chunk() const { return *static_cast<void**>(handle_); }
  // Gives it away.
  NDArrayHandle Release();

  // Within an operation of the engine's that may read it, or write it: where its elements lie, row
  // by row. The tensor is good while this object lives and stays where it is.
  hvd_tensor_t Describe(bool writable);

 private:
  // The NDArray whose elements lie row by row: this one, or a copy of it.
  NDArrayHandle RowByRow(bool writable);

  NDArrayHandle handle_ = nullptr;  // MXNet's; null: given away
  // A copy of an array that oneDNN's kernels may have left in the other layout: an mxnet::NDArray.
  struct Copy {
    explicit Copy(NDArrayHandle array) { mxnet.InDefaultLayout(room.data(), array); }
    ~Copy() { mxnet.Destroy(room.data()); }
    Copy(const Copy&) = delete;
    Copy& operator=(const Copy&) = delete;

    alignas(16) std::array<char, kArrayBytes> room;
  };
  std::unique_ptr<Copy> copy_;
  std::vector<int64_t> shape_;
};

}  // namespace hvd::mx
