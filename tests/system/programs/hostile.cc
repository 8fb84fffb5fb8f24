// SPDX-License-Identifier: Apache-2.0
// hostile MODE NAME: ranks that use NAME, whatever its bytes, for a tensor. "stall": rank 0 waits
// in it for the others. "mismatch": the ranks ask for different shapes. "last-words": rank 1 writes
// NAME to stderr and kills itself while the others wait for it in NAME. "throw": so does what rank
// 1 throws.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "hvd/hvd.hpp"

namespace {

void Together(const std::string& name, size_t count = 4) {
  std::vector<float> data(count, 1);
  hvd::allreduce(data, hvd::Op::kSum, name.c_str());
}

// Nobody ends before all have said what they were told: the first end may take the others with it.
void Differ(const std::string& name) {
  try {
    Together(name, 4 + hvd::rank());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "told: %s\n", error.what());
    hvd::barrier();
    std::exit(1);
  }
}

void Run(const std::string& mode, const std::string& name) {
  Together("one");
  if (mode == "stall" && hvd::rank() == 0) return Together(name);
  if (mode == "stall") return hvd::barrier();
  if (mode == "mismatch") return Differ(name);
  Together(name);
  if (hvd::rank() != 1) return Together(name);
  std::fputs(name.c_str(), stderr);
  if (mode == "throw") throw std::runtime_error(name);
  std::raise(SIGKILL);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    hvd::Session session;
    Run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "told: %s\n", error.what());
    return 1;
  }
}
