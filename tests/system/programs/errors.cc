// SPDX-License-Identifier: Apache-2.0
// Provokes everything that can be asked wrongly, with each rank in turn as the one that differs,
// and checks the code, the message (the same on every rank, with what both asked for and who they
// are) and that hvd goes on working. Prints "all errors right" on each rank.
#include <cstring>

#include "tests/system/programs/errors.h"

namespace {

// A wrong argument that a rank can see by itself is refused at once, whatever the others do.
void CheckArguments() {
  const Array good(*bench::FindDtype("float32"), {4}), scalar(*bench::FindDtype("float32"), {});
  hvd_tensor_t result = HVD_TENSOR_INIT;
  MustRefuse(HVD_ERR_INVALID, hvd_allgather(scalar.tensor(), nullptr, nullptr, &result), "scalar");
  MustRefuse(HVD_ERR_INVALID, hvd_reducescatter(scalar.tensor(), nullptr, nullptr, &result),
             "scalar");
  MustRefuse(HVD_ERR_INVALID,
             hvd_alltoall(scalar.tensor(), nullptr, 0, nullptr, nullptr, &result, nullptr),
             "scalar");
  std::vector<int64_t> splits(static_cast<size_t>(hvd::size()) + 1, 0);
  MustRefuse(HVD_ERR_INVALID,
             hvd_alltoall(good.tensor(), splits.data(), hvd::size() + 1, nullptr, nullptr, &result,
                          nullptr),
             "nsplits is");
  splits[0] = 5;
  MustRefuse(
      HVD_ERR_INVALID,
      hvd_alltoall(good.tensor(), splits.data(), hvd::size(), nullptr, nullptr, &result, nullptr),
      "splits[0] is 5");
  hvd_tensor_t wrong = *good.tensor();
  wrong.dtype = 99;
  MustRefuse(HVD_ERR_INVALID, hvd_allreduce(&wrong, &wrong, nullptr), "unknown dtype 99");
  wrong = *good.tensor();
  wrong.device_type = 9;
  MustRefuse(HVD_ERR_UNSUPPORTED, hvd_allreduce(&wrong, &wrong, nullptr), "device type 9");
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.root = hvd::size();
  MustRefuse(HVD_ERR_INVALID, hvd_broadcast(good.tensor(), good.tensor(), &options),
             "is not one of the");
  options = HVD_OPTIONS_INIT;
  options.process_set = 77;
  MustRefuse(HVD_ERR_INVALID, hvd_allreduce(good.tensor(), good.tensor(), &options),
             "process set 77 does not exist");
  MustRefuse(HVD_ERR_INVALID, hvd_remove_process_set(0), "cannot be removed");
  const int32_t twice[] = {0, 0}, outside[] = {hvd::size()};
  int32_t set = 0;
  MustRefuse(HVD_ERR_INVALID, hvd_add_process_set(twice, 2, &set), "there twice");
  MustRefuse(HVD_ERR_INVALID, hvd_add_process_set(outside, 1, &set), "is not one of the");
  MustStillWork("bad arguments");
}

// The last rank comes late, so that the name is pending meanwhile.
void CheckDuplicate() {
  std::vector<float> x(50000, 1), y(50000, 1), go(1);
  const bool late = hvd::rank() == hvd::size() - 1;
  if (late) hvd::allreduce(go, hvd::Op::kSum, "go");
  hvd::Handle first = hvd::allreduce_async(x, hvd::Op::kSum, "twice");
  if (!late) {
    const hvd::internal::Tensor<float> again(y.data(), y.size());
    hvd_options_t options = HVD_OPTIONS_INIT;
    options.name = "twice";
    hvd_handle_t handle = 0;
    const hvd_status_t status = hvd_allreduce_async(again.get(), again.get(), &options, &handle);
    if (status != HVD_ERR_DUPLICATE) Fail("a name that is pending was taken again");
    MustContain(hvd_last_error(), "'twice' is already pending", "duplicate");
    hvd::allreduce(go, hvd::Op::kSum, "go");
  }
  first.wait();
  if (x[49999] != static_cast<float>(hvd::size())) Fail("the first of two is wrong");
  MustStillWork("duplicate");
}

// A set from the start: rank 0 alone.
void InitWithSet() {
  const int32_t first = 0;
  const int32_t* sets[] = {&first};
  const int32_t sizes[] = {1};
  hvd_init_options_t options = HVD_INIT_OPTIONS_INIT;
  options.process_sets = sets;
  options.process_set_sizes = sizes;
  options.process_set_count = -1;
  MustRefuse(HVD_ERR_INVALID, hvd_init(&options), "process_set_count");
  options.process_set_count = 1;
  const int32_t nobody = 1 << 20;
  const int32_t* of_nobody[] = {&nobody};
  options.process_sets = of_nobody;
  MustRefuse(HVD_ERR_INVALID, hvd_init(&options), "is not one of the");
  if (hvd_is_initialized() != 0) Fail("initialized without its set");
  options.process_sets = sets;
  Must(hvd_init(&options), "init");
  if (hvd_process_set_size(1) != 1 || hvd_process_set_rank(1) != (hvd::rank() == 0 ? 0 : -1)) {
    Fail("the set given to hvd_init is not there");
  }
}

void CheckAll() {
  CheckArguments();
  CheckMismatches();
  CheckDuplicate();
}

}  // namespace

int main(int argc, char** argv) {
  // joined: only what is wrong while ranks have joined.
  const bool joined = argc > 1 && std::strcmp(argv[1], "joined") == 0;
  try {
    std::vector<float> x(3);
    const hvd::internal::Tensor<float> tensor(x.data(), x.size());
    MustRefuse(HVD_ERR_NOT_INITIALIZED, hvd_allreduce(tensor.get(), tensor.get(), nullptr),
               "hvd_init");
    InitWithSet();
    const hvd::Session session;  // shuts down
    joined ? CheckWhileJoined() : CheckAll();
    std::printf("all errors right on rank %d of %d\n", hvd::rank(), hvd::size());
  } catch (const hvd::Error& error) {
    std::fprintf(stderr, "rank %d: errors: %s\n", hvd::rank(), error.what());
    return 1;
  }
  return 0;
}
