// SPDX-License-Identifier: Apache-2.0
// Groups, for hvd.hpp, which includes it: tensors that are one call.
//
// The tensors agree, travel and fail together, under one name. All ranks give as many tensors, of
// the same lengths in the same order. There is at least one, and none overlaps another
// (HVD_ERR_INVALID); no pointer is null. Any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "hvd/handle.hpp"
#include "hvd/hvd.h"
#include "hvd/types.hpp"

namespace hvd {

namespace internal {

// A group's tensors, of one dimension each. Their shapes are part of it, so it stays where it is.
template <class T>
class Group {
 public:
  explicit Group(const std::vector<std::vector<T>*>& tensors)
      : counts_(tensors.size()), tensors_(tensors.size(), HVD_TENSOR_INIT) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      counts_[i] = static_cast<int64_t>(tensors[i]->size());
      tensors_[i].data = DataOf(*tensors[i]);
      tensors_[i].shape = &counts_[i];
      tensors_[i].ndim = 1;
      tensors_[i].dtype = DtypeOf<T>();
    }
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  const hvd_tensor_t* get() const { return tensors_.data(); }
  int32_t size() const { return static_cast<int32_t>(tensors_.size()); }

 private:
  std::vector<int64_t> counts_;
  std::vector<hvd_tensor_t> tensors_;
};

}  // namespace internal

// Reduces all of them in place; returns when all are there.
template <class T>
void grouped_allreduce(const std::vector<std::vector<T>*>& tensors, const Options& options = {}) {
  const internal::Group<T> group(tensors);
  const hvd_options_t made = internal::MakeOptions(options);
  internal::ThrowIfError(hvd_grouped_allreduce(group.get(), nullptr, group.size(), &made));
}
template <class T>
void grouped_allreduce(std::initializer_list<std::vector<T>*> tensors,
                       const Options& options = {}) {
  grouped_allreduce(std::vector<std::vector<T>*>(tensors), options);
}
// Returns at once; the memory of all of them is hvd's until the handle is done. The list itself may
// go.
template <class T>
Handle grouped_allreduce_async(const std::vector<std::vector<T>*>& tensors,
                               const Options& options = {}) {
  const internal::Group<T> group(tensors);
  const hvd_options_t made = internal::MakeOptions(options);
  hvd_handle_t handle = 0;
  internal::ThrowIfError(
      hvd_grouped_allreduce_async(group.get(), nullptr, group.size(), &made, &handle));
  return Handle(handle);
}
template <class T>
Handle grouped_allreduce_async(std::initializer_list<std::vector<T>*> tensors,
                               const Options& options = {}) {
  return grouped_allreduce_async(std::vector<std::vector<T>*>(tensors), options);
}

}  // namespace hvd
