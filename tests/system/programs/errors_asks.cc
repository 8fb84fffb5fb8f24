// SPDX-License-Identifier: Apache-2.0
// What the parts of errors ask hvd for, and what they want of its answers.
#include <deque>

#include "tests/system/programs/errors.h"

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
  std::deque<Array> arrays;
  std::vector<hvd_tensor_t> inputs;
  for (int i = 0; i < tensors; ++i) {
    arrays.emplace_back(*bench::FindDtype("float32"), std::vector<int64_t>{elements});
    inputs.push_back(*arrays.back().tensor());
  }
  return hvd_grouped_allreduce(inputs.data(), nullptr, tensors, &ask->options);
}

void MustStillWork(const std::string& what) {
  for (const size_t count : {size_t{3}, size_t{50000}}) {
    std::vector<float> data(count, 1);
    hvd::allreduce(data, hvd::Op::kSum, "still");
    if (data.back() != static_cast<float>(hvd::size())) Fail(what + ": hvd does not work after it");
  }
}
