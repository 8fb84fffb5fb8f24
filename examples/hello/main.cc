// SPDX-License-Identifier: Apache-2.0
// The smallest program: every rank says who it is, and all agree on a sum.
//   hvdrun -np 4 build/bin/hello
#include <cstdio>

#include "hvd/hvd.hpp"

int main() {
  try {
    hvd::Session session;  // joins the job; leaves it at the end of the scope

    float value = static_cast<float>(hvd::rank() + 1);
    hvd::allreduce(&value, 1, hvd::Op::kSum, "sum");

    std::printf("rank %d of %d (%d of %d on its host): 1 + ... + %d = %.0f\n", hvd::rank(),
                hvd::size(), hvd::local_rank(), hvd::local_size(), hvd::size(), value);
  } catch (const hvd::Error& error) {
    std::fprintf(stderr, "hello: %s\n", error.what());
    return 1;
  }
  return 0;
}
