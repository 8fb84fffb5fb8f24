// SPDX-License-Identifier: Apache-2.0
// pending MODE TENSORS [SET]: many tensors pending at once, asynchronously, in opposite orders on
// even and odd ranks.
//   all    all results must be right, twice; says how much memory the process had at most, in MB
//   long   the same with names of 200 bytes
//   over   one rank passes the limit of what may be pending; says how that ended
// With SET the tensors are those of a process set of so many ranks; the others leave at once.
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "hvd/hvd.hpp"

namespace {

struct Crowd {
  int tensors = 0;
  int ranks = 0;
  bool long_names = false;
  int32_t set = 0;
  std::vector<float> values;
  std::vector<hvd::Handle> handles;
};

void Say(const std::string& text) {
  std::printf("rank %s: %s\n", std::getenv("HVD_RANK"), text.c_str());
  std::fflush(stdout);
}

std::string NameOf(const Crowd& crowd, int tensor) {
  const std::string name = "tensor " + std::to_string(tensor);
  return crowd.long_names ? std::string(190, 'n') + name : name;
}

void Submit(Crowd* crowd) {
  crowd->values.assign(static_cast<size_t>(crowd->tensors), 0);
  crowd->handles.clear();
  for (int i = 0; i < crowd->tensors; ++i) {
    const int tensor = hvd::rank() % 2 == 0 ? i : crowd->tensors - 1 - i;
    float* const value = &crowd->values[static_cast<size_t>(tensor)];
    *value = static_cast<float>(tensor % 1000 + hvd::rank());
    hvd::Options options;
    options.name = NameOf(*crowd, tensor);
    options.op = hvd::Op::kSum;
    options.process_set = crowd->set;
    crowd->handles.push_back(hvd::allreduce_async(value, 1, options));
  }
}

int CountWrong(const Crowd& crowd) {
  const int ranks = crowd.ranks;
  int wrong = 0;
  for (int tensor = 0; tensor < crowd.tensors; ++tensor) {
    const float sum = static_cast<float>(ranks * (tensor % 1000) + ranks * (ranks - 1) / 2);
    if (crowd.values[static_cast<size_t>(tensor)] != sum) ++wrong;
  }
  return wrong;
}

int All(Crowd* crowd) {
  for (int step = 0; step < 2; ++step) {
    Submit(crowd);
    for (hvd::Handle& handle : crowd->handles) handle.wait();
    if (const int wrong = CountWrong(*crowd); wrong > 0) {
      Say(std::to_string(wrong) + " tensors are wrong");
      return 1;
    }
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  Say("all right with " + std::to_string(used.ru_maxrss / 1024) + " MB");
  return 0;
}

int Over(Crowd* crowd) {
  Submit(crowd);
  for (hvd::Handle& handle : crowd->handles) handle.wait();
  return 0;
}

int Run(Crowd* crowd, bool over, int set_ranks) {
  hvd::barrier();  // the end must find all ranks here
  crowd->ranks = set_ranks > 0 ? set_ranks : hvd::size();
  if (set_ranks > 0) {
    std::vector<int32_t> ranks;
    for (int32_t rank = 0; rank < set_ranks; ++rank) ranks.push_back(rank);
    crowd->set = hvd::add_process_set(ranks);
    if (hvd::rank() >= set_ranks) return 0;
  }
  return over ? Over(crowd) : All(crowd);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::signal(SIGTERM, SIG_IGN);  // hvdrun's, when the first has ended
  const std::string mode = argv[1];
  Crowd crowd;
  crowd.tensors = std::atoi(argv[2]);
  crowd.long_names = mode == "long";
  hvd::Session session;
  try {
    return Run(&crowd, mode == "over", argc > 3 ? std::atoi(argv[3]) : 0);
  } catch (const hvd::Error& error) {  // of whichever call it is in by then
    Say(std::string("ended: ") + error.what());
    return 1;
  }
}
