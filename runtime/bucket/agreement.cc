// SPDX-License-Identifier: Apache-2.0
#include "runtime/bucket/agreement.h"

#include <utility>

#include "base/printable.h"
#include "runtime/bucket/layout.h"
#include "runtime/errors/errors.h"

namespace hvd::rt {

hvd_status_t BucketAgreement::Ask() {
  if (asked_ != 0) return HVD_OK;
  const uint64_t epoch = side_.epoch();
  if (epoch == 0) return NotInitialized();
  if (epoch == agreed_in_) return HVD_OK;
  row_ = LayoutRow(hvd_rank(), side_.dtype, *side_.plan);
  const auto numbers = static_cast<int64_t>(row_.size());
  hvd_tensor_t tensor = HVD_TENSOR_INIT;
  tensor.data = row_.data();
  tensor.shape = &numbers;
  tensor.ndim = 1;
  tensor.dtype = HVD_INT64;
  hvd_options_t options = HVD_OPTIONS_INIT;
  const std::string name = side_.bucket + ".layout";
  options.name = name.c_str();
  options.process_set = side_.process_set;
  asked_in_ = epoch;
  const hvd_status_t status = hvd_allgather_async(&tensor, nullptr, &options, &asked_);
  if (status != HVD_OK) asked_ = 0;
  return status;
}

hvd_status_t BucketAgreement::End() {
  if (asked_ != 0) {
    status_ = Compare();
    if (status_ != HVD_OK) why_ = hvd_last_error();
  }
  return status_ == HVD_OK ? HVD_OK : Fail(status_, why_);
}

void BucketAgreement::Forget() {
  status_ = HVD_OK;
  most_chunks_ = 0;
}

hvd_status_t BucketAgreement::Compare() {
  hvd_tensor_t rows = HVD_TENSOR_INIT;
  const hvd_status_t status = hvd_wait_result(std::exchange(asked_, 0), &rows);
  if (status != HVD_OK) return status;
  const LayoutComparison all =
      CompareLayouts({static_cast<const int64_t*>(rows.data), static_cast<size_t>(rows.shape[0])});
  hvd_free_result(&rows);
  if (!all.difference.empty()) {
    most_chunks_ = all.most_chunks;
    return Fail(HVD_ERR_MISMATCH, "bucket " + ShownName(side_.bucket) +
                                      " is not the same on all ranks: " + all.difference +
                                      ". What it holds now is undefined; make it with the same "
                                      "tensors, in the same order, on all ranks");
  }
  // A rank that has joined had no row: it has yet to ask, and all others with it.
  if (all.ranks == hvd_process_set_size(side_.process_set)) agreed_in_ = asked_in_;
  return HVD_OK;
}

}  // namespace hvd::rt
