// SPDX-License-Identifier: Apache-2.0
// groups MODE: groups of tensors of several types.
//   differ   ranks give groups of other types, counts and operations than one another: one mismatch
//            ends all of a group everywhere, and what comes after it is paired rightly
//   joined   the last rank has joined: the others' groups go on without it
//   stalled  ranks wait for calls whose names differ behind 300 bytes, the first for a group, too
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "tests/system/programs/checks.h"

namespace {

using Types = std::vector<hvd_dtype_t>;
enum class Kind { kAllreduce, kAllgather, kReduceScatter, kSingle };

// One rank's tensors, each of 8 elements that are `value`, and the call on them.
class Group {
 public:
  Group(Kind kind, const Types& types, double value) : kind_(kind) {
    for (const hvd_dtype_t type : types) {
      for (const Dtype& dtype : bench::Dtypes()) {
        if (dtype.code != type) continue;
        arrays_.push_back(std::make_unique<Array>(dtype, std::vector<int64_t>{8}));
        for (size_t i = 0; i < 8; ++i) arrays_.back()->Set(i, value);
        tensors_.push_back(*arrays_.back()->tensor());
      }
    }
    results_.resize(tensors_.size());
  }

  hvd_status_t Submit(hvd_options_t options, hvd_handle_t* handle) {
    options.op = kind_ == Kind::kAllgather ? HVD_AVERAGE : HVD_SUM;  // that is its default
    const auto count = static_cast<int32_t>(tensors_.size());
    switch (kind_) {
      case Kind::kAllreduce:
        return hvd_grouped_allreduce_async(tensors_.data(), nullptr, count, &options, handle);
      case Kind::kAllgather:
        return hvd_grouped_allgather_async(tensors_.data(), nullptr, count, &options, handle);
      case Kind::kReduceScatter:
        return hvd_grouped_reducescatter_async(tensors_.data(), nullptr, count, &options, handle);
      case Kind::kSingle:
        return hvd_allreduce_async(tensors_.data(), tensors_.data(), &options, handle);
    }
    return HVD_ERR_INVALID;
  }
  hvd_status_t Wait(hvd_handle_t handle) {
    const bool has_results = kind_ == Kind::kAllgather || kind_ == Kind::kReduceScatter;
    const auto count = static_cast<int32_t>(results_.size());
    return has_results ? hvd_wait_results(handle, results_.data(), count) : hvd_wait(handle);
  }
  // Checks the results of an allreduce.
  void MustBe(double value, const std::string& what) const {
    for (const auto& array : arrays_) {
      for (size_t i = 0; i < 8; ++i) {
        if (array->Get(i) != value) Fail(what + ": " + std::to_string(array->Get(i)));
      }
    }
  }
  ~Group() {
    for (hvd_tensor_t& result : results_) {
      if (result.data != nullptr) hvd_free_result(&result);
    }
  }

 private:
  const Kind kind_;
  std::vector<std::unique_ptr<Array>> arrays_;
  std::vector<hvd_tensor_t> tensors_, results_;
};

hvd_options_t Options(const std::string& name, int32_t set) {
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.name = name.c_str();
  options.process_set = set;
  return options;
}

struct Asked {
  Kind kind;
  Types types;
};
const Types kTwo = {HVD_FLOAT32, HVD_INT32}, kOther = {HVD_INT32, HVD_FLOAT64},
            kThree = {HVD_UINT8, HVD_FLOAT32, HVD_FLOAT64}, kOne = {HVD_FLOAT32},
            kTurned = {HVD_INT32, HVD_FLOAT32}, kMore = {HVD_FLOAT32, HVD_INT32, HVD_INT32};
// The requests of the ranks but the first, and of the first.
const std::vector<std::pair<Asked, Asked>> kDiffering = {
    {{Kind::kAllreduce, kOne}, {Kind::kAllreduce, kTwo}},
    {{Kind::kAllreduce, kTwo}, {Kind::kAllreduce, kOne}},
    {{Kind::kAllreduce, kOther}, {Kind::kAllreduce, kTwo}},
    {{Kind::kAllreduce, kThree}, {Kind::kAllreduce, kTwo}},
    {{Kind::kAllreduce, kTurned}, {Kind::kAllreduce, kTwo}},
    {{Kind::kAllreduce, kMore}, {Kind::kAllreduce, kTwo}},
    {{Kind::kAllgather, kTwo}, {Kind::kAllreduce, kTwo}},
    {{Kind::kAllgather, kOther}, {Kind::kAllgather, kTwo}},
    {{Kind::kReduceScatter, kThree}, {Kind::kReduceScatter, kOne}},
    {{Kind::kReduceScatter, kTwo}, {Kind::kAllgather, kThree}},
    {{Kind::kSingle, kOne}, {Kind::kAllreduce, kTwo}},
    {{Kind::kAllreduce, kThree}, {Kind::kSingle, {HVD_INT32}}},
};

// A mismatch; then the same name, of the types of either side, must give the right sum.
void Differ(int32_t set, const std::string& name, size_t at) {
  const auto& [others, first] = kDiffering[at];
  const std::string what = "case " + std::to_string(at) + (name.empty() ? ", unnamed" : ", named");
  const Asked& mine = hvd_process_set_rank(set) == 0 ? first : others;
  Group wrong(mine.kind, mine.types, 1);
  hvd_handle_t handle = 0;
  Must(wrong.Submit(Options(name, set), &handle), what);
  if (wrong.Wait(handle) != HVD_ERR_MISMATCH) Fail(what + " is no mismatch: " + hvd_last_error());
  MustContain(hvd_last_error(), "ranks ask for different", what);
  for (const Types& types : {kTwo, kOther, kThree, kOne}) {
    const double size = hvd_process_set_size(set), rank = hvd_process_set_rank(set);
    Group group(Kind::kAllreduce, types, rank + 1);
    Must(group.Submit(Options(name, set), &handle), what + ", afterwards");
    Must(group.Wait(handle), what + ", afterwards");
    group.MustBe(size * (size + 1) / 2, what + ", the sum afterwards");
  }
}

void DifferInSet(int32_t set) {
  for (size_t at = 0; at < kDiffering.size(); ++at) {
    Differ(set, "g" + std::to_string(at), at);
    Differ(set, "", at);
  }
  // Several at once, of which some differ; then all of them rightly.
  for (const bool right : {false, true}) {
    std::vector<std::unique_ptr<Group>> groups;
    std::vector<hvd_handle_t> handles;
    const bool is_first = hvd_process_set_rank(set) == 0;
    for (int i = 0; i < 20; ++i) {
      const Types& types = !right && i % 3 == 0 && is_first ? kOther : kTwo;
      groups.push_back(std::make_unique<Group>(Kind::kAllreduce, types, 1));
      const std::string name = i % 2 == 0 ? "many " + std::to_string(i) : "";
      Must(groups.back()->Submit(Options(name, set), &handles.emplace_back()), "many at once");
    }
    for (size_t i = 0; i < groups.size(); ++i) {
      const hvd_status_t wanted = right || i % 3 != 0 ? HVD_OK : HVD_ERR_MISMATCH;
      if (groups[i]->Wait(handles[i]) != wanted) Fail("many at once: " + std::to_string(i));
      if (wanted == HVD_OK) groups[i]->MustBe(hvd_process_set_size(set), "many at once");
    }
  }
}

void Differ() {
  DifferInSet(HVD_GLOBAL_PROCESS_SET);
  std::vector<int32_t> ranks(static_cast<size_t>(hvd::size()) - (hvd::size() > 2 ? 1 : 0));
  std::iota(ranks.begin(), ranks.end(), hvd::size() - static_cast<int32_t>(ranks.size()));
  const int32_t set = hvd::size() > 2 ? hvd::add_process_set(ranks) : HVD_GLOBAL_PROCESS_SET;
  if (hvd_process_set_rank(set) >= 0) DifferInSet(set);
}

// Every type that there is, so that the joined rank hears of each.
void Joined() {
  Types all;  // a bool's sum is "or"
  for (const Dtype& dtype : bench::Dtypes()) all.push_back(dtype.code);
  const int last = hvd::size() - 1;
  for (int round = 0; round < 3; ++round) {
    if (hvd::rank() != last) {
      for (const Types& types : {kTwo, kThree, all}) {
        for (const std::string& name : {std::string(), std::string("beside a joined one")}) {
          Group sums(Kind::kAllreduce, types, 1), rows(Kind::kAllgather, types, 1);
          hvd_handle_t summing = 0, gathering = 0;
          Must(sums.Submit(Options(name, 0), &summing), "a sum beside a joined rank");
          Must(sums.Wait(summing), "a sum beside a joined rank");
          if (types != all) sums.MustBe(last, "a sum beside a joined rank");
          Must(rows.Submit(Options(name, 0), &gathering), "rows");
          Must(rows.Wait(gathering), "rows beside a joined rank");
        }
      }
    }
    Must(hvd_join(nullptr), "join");
  }
}

void Stalled() {
  const std::string name = std::string(300, 'n') + (hvd::rank() == 0 ? ".one" : ".two");
  Group single(Kind::kSingle, kOne, 1), group(Kind::kAllreduce, kTwo, 1);
  hvd_handle_t handle = 0, other = 0;
  Must(single.Submit(Options(name, 0), &handle), "a long name");
  if (hvd::rank() == 0) Must(group.Submit(Options("of two types", 0), &other), "a group");
  Must(single.Wait(handle), "what nobody else asks for");
}

}  // namespace

int main(int argc, char** argv) {
  const hvd::Session session;
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "differ") {
    Differ();
  } else if (mode == "joined") {
    Joined();
  } else if (mode == "stalled") {
    Stalled();
  } else {
    Fail("which mode?");
  }
  std::printf("%s is right\n", mode.c_str());
}
