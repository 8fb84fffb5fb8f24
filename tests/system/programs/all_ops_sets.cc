// SPDX-License-Identifier: Apache-2.0
// Process sets: made, used beside one another, and removed.
#include "tests/system/programs/all_ops.h"

namespace {

int32_t Add(const std::vector<int32_t>& ranks) {
  int32_t set = -1;
  Must(hvd_add_process_set(ranks.data(), static_cast<int32_t>(ranks.size()), &set), "add a set");
  if (hvd_process_set_size(set) != static_cast<int32_t>(ranks.size())) Fail("size of the set");
  return set;
}

// Sums of the members' ranks on the set, small and large, and a gather of the ranks.
void CheckOnSet(int32_t set, const std::vector<int32_t>& ranks) {
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.process_set = set;
  options.op = HVD_SUM;
  float wanted = 0;
  for (const int32_t rank : ranks) wanted += static_cast<float>(rank);
  for (const size_t count : {1, 5000, 300000}) {
    std::vector<float> data(count, static_cast<float>(hvd::rank()));
    const hvd::internal::Tensor<float> tensor(data.data(), count);
    const hvd_status_t status = hvd_allreduce(tensor.get(), tensor.get(), &options);
    if (hvd_process_set_rank(set) < 0) {
      if (status != HVD_ERR_INVALID) Fail("a non-member was let in");
      continue;
    }
    Must(status, "allreduce on a set");
    for (const float value : data) {
      if (value != wanted) Fail("allreduce on a set: wrong value");
    }
  }
  if (hvd_process_set_rank(set) < 0) return;
  const int32_t mine = hvd::rank();
  const hvd::internal::Tensor<int32_t> input(&mine, 1);
  options.op = HVD_AVERAGE;
  hvd_tensor_t all = HVD_TENSOR_INIT;
  Must(hvd_allgather(input.get(), nullptr, &options, &all), "allgather on a set");
  if (all.shape[0] != static_cast<int64_t>(ranks.size())) Fail("allgather on a set: rows");
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (static_cast<int32_t*>(all.data)[i] != ranks[i]) Fail("allgather on a set: wrong value");
  }
  hvd_free_result(&all);
  int32_t root_value = mine;
  options.root = ranks.back();
  const hvd::internal::Tensor<int32_t> sent(&root_value, 1);
  Must(hvd_broadcast(sent.get(), sent.get(), &options), "broadcast on a set");
  if (root_value != ranks.back()) Fail("broadcast on a set: wrong value");
  options.root = 0;
  Must(hvd_barrier(&options), "barrier on a set");
}

// The same from C++, of members; also of memory that the host's ranks see.
void CheckOptionsOnSet(int32_t set, const std::vector<int32_t>& ranks) {
  if (hvd_process_set_rank(set) < 0) return;
  hvd::Options options;
  options.process_set = set;
  std::vector<int32_t> mine = {hvd::rank()};
  if (hvd::allgather(mine, options) != ranks) Fail("allgather of a vector on a set");
  hvd::broadcast(mine, ranks.back(), options);
  if (mine[0] != ranks.back()) Fail("broadcast of a vector on a set");
  const std::vector<int32_t> to_each(ranks.size(), hvd::rank());
  const auto received = hvd::alltoall_async(to_each.data(), to_each.size(), 1, {}, options).wait();
  if (received.data != ranks) Fail("alltoall in flight on a set");
  if (received.splits != std::vector<int64_t>(ranks.size(), 1)) Fail("splits on a set");
  hvd::GradientOptions reduction;
  reduction.name = "gradients of set " + std::to_string(set);
  reduction.op = hvd::Op::kSum;
  reduction.process_set = set;
  hvd::Gradients<float> gradients({3}, reduction);
  gradients[0][2] = 1;
  gradients.ready(0);
  gradients.wait();
  if (gradients[0][2] != static_cast<float>(ranks.size())) Fail("gradients on a set");
}

// A member's counters have what it has done on the set, and nothing of sets that are gone.
void CheckCounted(int32_t set, int allreduces) {
  size_t bytes = 0;
  Must(hvd_metrics(nullptr, &bytes), "metrics");
  std::string json(bytes += 1000, 0);
  Must(hvd_metrics(json.data(), &bytes), "metrics");
  const std::string counted = "\"" + std::to_string(set) +
                              "\":{\"calls\":{\"allreduce\":" + std::to_string(allreduces) + ",";
  const bool found = json.find(counted, json.find("\"sets\":{")) != std::string::npos;
  if (found != (hvd_process_set_rank(set) >= 0)) Fail("no " + counted + " in " + json.c_str());
}

std::vector<int32_t> Every(int step, int first) {
  std::vector<int32_t> ranks;
  for (int32_t rank = first; rank < hvd::size(); rank += step) ranks.push_back(rank);
  return ranks;
}

}  // namespace

void CheckProcessSets() {
  const std::vector<int32_t> even = Every(2, 0), odd = Every(2, 1), low = {0};
  if (hvd::size() < 2) return;
  for (int turn = 0; turn < 3; ++turn) {
    const int32_t a = Add(even), b = Add(odd);
    const int32_t c = hvd::size() > 2 ? Add(low) : a;
    if (hvd_process_set_count() != (hvd::size() > 2 ? 4 : 3)) Fail("number of sets");
    std::vector<int32_t> ids(4);
    int32_t count = 0;
    Must(hvd_process_set_ids(ids.data(), 4, &count), "ids");
    if (ids[0] != 0 || ids[1] != a || ids[2] != b || b <= a) Fail("ids of sets");
    std::vector<int32_t> members(odd.size());
    Must(hvd_process_set_ranks(b, members.data()), "members");
    if (members != odd) Fail("members of a set");
    for (int i = 0; i < 3; ++i) {
      CheckOnSet(a, even);
      CheckOnSet(b, odd);
      CheckOnSet(c, c == a ? even : low);
    }
    CheckCounted(b, 9);
    CheckOptionsOnSet(a, even);
    CheckOptionsOnSet(b, odd);
    int32_t same = -1;
    if (hvd_add_process_set(odd.data(), static_cast<int32_t>(odd.size()), &same) !=
            HVD_ERR_DUPLICATE ||
        same != b) {
      Fail("the same set twice");
    }
    for (const int32_t set : {b, c, a}) {
      if (set == a && c == a && hvd_process_set_size(a) < 0) continue;
      Must(hvd_remove_process_set(set), "remove a set");
      if (hvd_process_set_size(set) != -1) Fail("a removed set is still there");
    }
    hvd::barrier();
  }
}
