// Groups, for hvd.hpp, which includes it: tensors that are one call, ranks that are a process set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hvd/hvd.h"
#include "hvd/types.hpp"

namespace hvd {

// All of them in place, as one, under one name.
template <class T>
void grouped_allreduce(const std::vector<std::vector<T>*>& tensors, const Options& options = {}) {
  std::vector<int64_t> counts;
  for (const std::vector<T>* tensor : tensors) {
    counts.push_back(static_cast<int64_t>(tensor->size()));
  }
  std::vector<hvd_tensor_t> inputs(tensors.size(), HVD_TENSOR_INIT);
  for (size_t i = 0; i < tensors.size(); ++i) {
    inputs[i].data = tensors[i]->data();
    inputs[i].shape = &counts[i];
    inputs[i].ndim = 1;
    inputs[i].dtype = dtype_of<T>::value;
  }
  const hvd_options_t made = internal::MakeOptions(options);
  internal::ThrowIfError(
      hvd_grouped_allreduce(inputs.data(), nullptr, static_cast<int32_t>(inputs.size()), &made));
}

// Every rank of the job calls it with the same ranks; returns the new set's number.
inline int add_process_set(const std::vector<int32_t>& ranks) {
  int32_t set = -1;
  internal::ThrowIfError(
      hvd_add_process_set(ranks.data(), static_cast<int32_t>(ranks.size()), &set));
  return set;
}
inline void remove_process_set(int set) { internal::ThrowIfError(hvd_remove_process_set(set)); }
inline int process_set_rank(int set) { return hvd_process_set_rank(set); }  // -1: no member
inline int process_set_size(int set) { return hvd_process_set_size(set); }  // -1: no such set

// Returns when every rank of the set has called it and all that this rank submitted before is done.
inline void barrier(int process_set) {
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.process_set = process_set;
  internal::ThrowIfError(hvd_barrier(&options));
}

}  // namespace hvd
