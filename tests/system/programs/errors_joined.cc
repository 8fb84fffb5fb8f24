// SPDX-License-Identifier: Apache-2.0
// What happens while a rank has joined: what needs everyone fails on the others, the rest goes on.
#include "tests/system/programs/errors.h"

namespace {

template <class Collective>
void MustRefuseJoined(const char* what, Collective collective) {
  try {
    collective();
    Fail(std::string(what) + " that refuses those who have joined goes on");
  } catch (const hvd::Error& error) {
    if (error.code() != HVD_ERR_MISMATCH) Fail(error.what());
    MustContain(error.what(), "HVD_REFUSE_JOINED", what);
  }
}

void CheckRefusedWhileJoined(size_t count) {
  hvd::Options options;
  options.refuse_joined = true;
  options.name = "refuses";
  std::vector<float> data(count, 2), more(3, 2);
  for (int round = 0; round < 2; ++round) {
    MustRefuseJoined("an allreduce", [&] { hvd::allreduce(data, options); });
    MustRefuseJoined("a group", [&] { hvd::grouped_allreduce<float>({&data, &more}, options); });
  }
}

// Twos of all ranks but one.
void CheckReducedWhileJoined(size_t count) {
  const auto here = static_cast<float>(hvd::size() - 1), all = static_cast<float>(hvd::size());
  hvd::Options options;
  const auto check = [&](const char* name, float wanted) {
    std::vector<float> data(count, 2), more(3, 2);
    options.name = name;
    hvd::allreduce(data, options);
    if (std::abs(data.back() - wanted) > 1e-6) Fail(std::string(name) + " while a rank has joined");
    data.assign(count, 2);
    hvd::grouped_allreduce<float>({&data, &more}, options);
    if (std::abs(data[0] - wanted) > 1e-6 || std::abs(more[2] - wanted) > 1e-6) {
      Fail(std::string(name) + " of a group while a rank has joined");
    }
  };
  check("average", 2 * here / all);
  options.average_over_contributors = true;
  check("average over contributors", 2);
  options.average_over_contributors = false;
  options.op = hvd::Op::kSum;
  check("sum", 2 * here);
  options.op = hvd::Op::kMin;
  check("min", 2);
  options.op = hvd::Op::kAdasum;
  check("adasum", 2);
  const std::vector<int32_t> rows(count, hvd::rank());
  const size_t all_rows = hvd::allgather(rows, "rows").size();
  if (all_rows != count * static_cast<size_t>(hvd::size() - 1)) Fail("rows while joined");
  hvd::barrier();
}

// The first and the last rank; 0 when these are all.
int32_t AddOuterSet() {
  const int32_t ranks[] = {0, hvd::size() - 1};
  int32_t set = 0;
  if (hvd::size() > 2) Must(hvd_add_process_set(ranks, 2, &set), "add a set");
  return set;
}

// One that has joined takes part in a set, too.
void CheckSetWhileJoined(int32_t set, int early) {
  if (set == 0 || hvd_process_set_rank(set) < 0) return;
  const bool missing = early == 0 || early == hvd::size() - 1;
  hvd::Options options;
  options.name = "outer";
  options.op = hvd::Op::kSum;
  options.process_set = set;
  for (const size_t count : {4, 50000}) {
    std::vector<float> data(count, 2);
    hvd::allreduce(data, options);
    if (data.back() != (missing ? 2 : 4)) Fail("sum on a set while a rank has joined");
  }
}

void CheckJoined(int early, int32_t set) {
  int32_t last = -1;
  if (hvd::rank() != early) {
    Ask ask;
    ask.name = "joined";
    ask.options.name = ask.name.c_str();
    for (const int64_t n : {int64_t{4}, int64_t{50000}}) {
      using Attempt = std::pair<const char*, std::function<hvd_status_t()>>;
      for (const auto& [kind, attempt] :
           {Attempt{"broadcast", [&] { return Broadcast(&ask, {n}); }},
            {"reduce-scatter", [&] { return Scatter(&ask, {n}); }},
            {"alltoall", [&] { return Alltoall(&ask, {n}); }}}) {
        if (attempt() != HVD_ERR_MISMATCH) Fail(std::string(kind) + " while a rank has joined");
        MustContain(hvd_last_error(), "1 of " + std::to_string(hvd::size()) + " ranks have joined",
                    kind);
      }
      CheckRefusedWhileJoined(static_cast<size_t>(n));
      CheckReducedWhileJoined(static_cast<size_t>(n));
    }
    CheckSetWhileJoined(set, early);
  }
  Must(hvd_join(&last), "join");
  if (last < 0 || last >= hvd::size() || (hvd::size() > 1 && last == early)) {
    Fail("the last rank to join is " + std::to_string(last));
  }
  MustStillWork("join");
}

}  // namespace

void CheckWhileJoined() {
  const int32_t outer = AddOuterSet();
  for (int early = 0; early < hvd::size(); ++early) CheckJoined(early, outer);
}
