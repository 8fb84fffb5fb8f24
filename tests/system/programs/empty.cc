// SPDX-License-Identifier: Apache-2.0
// empty: tensors without elements that have no address (NULL), on all ranks or on one, in every
// call, with scales and without, small ones and wide ones, alone and in groups.
#include <string>
#include <vector>

#include "tests/system/programs/checks.h"

namespace {

constexpr int64_t kWide = 10000;  // elements of a row: too many for the short way

// A tensor of this rank: `rows` of `width` ones; without an address when there are none.
struct Rows {
  Rows(int64_t rows, int64_t width, double scale = 1)
      : data(static_cast<size_t>(rows * width), 1.0f), shape{rows, width} {
    tensor.data = rows > 0 ? data.data() : nullptr;
    tensor.shape = shape;
    tensor.ndim = 2;
    options.op = HVD_SUM;
    options.prescale = scale;
  }
  std::vector<float> data;
  int64_t shape[2];
  hvd_tensor_t tensor = HVD_TENSOR_INIT;
  hvd_options_t options = HVD_OPTIONS_INIT;
};

std::string Named(const char* what, int64_t width, bool named) {
  return named ? std::string(what) + " " + std::to_string(width) : "";
}

void Reductions(int64_t width, bool named) {
  for (const double scale : {1.0, 0.5}) {
    Rows none(0, width, scale);
    const std::string name = Named("sum", width, named);
    none.options.name = name.c_str();
    Must(hvd_allreduce(&none.tensor, &none.tensor, &none.options), "an empty allreduce");
    hvd_handle_t handle = 0;
    Must(hvd_allreduce_async(&none.tensor, &none.tensor, &none.options, &handle), "async");
    Must(hvd_wait(handle), "an empty allreduce, later");
    hvd_tensor_t result = HVD_TENSOR_INIT;
    Must(hvd_reducescatter(&none.tensor, nullptr, &none.options, &result), "reducescatter");
    if (result.shape[0] != 0 || result.shape[1] != width) Fail("an empty reducescatter's shape");
    hvd_free_result(&result);
    const hvd_tensor_t group[] = {none.tensor, none.tensor};
    Must(hvd_grouped_allreduce(group, nullptr, 2, &none.options), "an empty group");
  }
}

// All but the one have rows, or only it.
void Gathers(int64_t width, bool named, int one) {
  for (const bool only : {false, true}) {
    const int64_t rows = (hvd::rank() == one) == only ? 2 : 0;
    const int64_t all = only ? 2 : 2 * (hvd::size() - 1);
    Rows mine(rows, width);
    mine.options.op = HVD_AVERAGE;
    const std::string name = Named("rows", width, named);
    mine.options.name = name.c_str();
    hvd_tensor_t result = HVD_TENSOR_INIT;
    Must(hvd_allgather(&mine.tensor, nullptr, &mine.options, &result), "allgather");
    if (result.shape[0] != all) Fail("an allgather's rows: " + std::to_string(result.shape[0]));
    for (int64_t i = 0; i < all * width; ++i) {
      if (static_cast<const float*>(result.data)[i] != 1) Fail("an allgather's values");
    }
    hvd_free_result(&result);

    std::vector<int64_t> splits(static_cast<size_t>(hvd::size()), 0), received(splits);
    splits[0] = rows;
    Must(hvd_alltoall(&mine.tensor, splits.data(), hvd::size(), nullptr, &mine.options, &result,
                      received.data()),
         "alltoall");
    if (result.shape[0] != (hvd::rank() == 0 ? all : 0)) Fail("an alltoall's rows");
    hvd_free_result(&result);

    hvd_tensor_t results[2] = {HVD_TENSOR_INIT, HVD_TENSOR_INIT};
    const hvd_tensor_t group[] = {mine.tensor, mine.tensor};
    Must(hvd_grouped_allgather(group, nullptr, 2, &mine.options, results), "a group of rows");
    if (results[1].shape[0] != all) Fail("a grouped allgather's rows");
    for (hvd_tensor_t& one_result : results) hvd_free_result(&one_result);
  }
}

void Others(int64_t width) {
  Rows none(0, width);
  hvd_options_t options = HVD_OPTIONS_INIT;
  Must(hvd_broadcast(&none.tensor, &none.tensor, &options), "an empty broadcast");
  const int right = (hvd::rank() + 1) % hvd::size();
  const int left = (hvd::rank() + hvd::size() - 1) % hvd::size();
  Rows mine(0, width);
  hvd_handle_t sent = 0;
  Must(hvd_send_async(&mine.tensor, right, width, &options, &sent), "an empty send");
  Must(hvd_recv(&none.tensor, left, width, &options), "an empty receive");
  Must(hvd_wait(sent), "an empty send");
}

}  // namespace

int main() {
  const hvd::Session session;
  for (const bool named : {true, false}) {
    for (const int64_t width : {int64_t{1}, int64_t{0}, kWide}) {
      Reductions(width, named);
      for (int one = 0; width > 0 && one < hvd::size(); ++one) Gathers(width, named, one);
      Others(width);
    }
  }
  // Nobody is one off.
  std::vector<int64_t> sum(1, hvd::rank());
  hvd::Options options;
  options.op = hvd::Op::kSum;
  hvd::allreduce(sum, options);
  if (sum[0] != int64_t{hvd::size()} * (hvd::size() - 1) / 2) Fail("the sum afterwards");
  std::printf("empty tensors are right\n");
}
