// SPDX-License-Identifier: Apache-2.0
// checkpoint [SECONDS [GRACE]]: trains for ever; on TERM or USR1 all ranks agree after which step
// to stop, "save" for SECONDS, and end with 0. GRACE: asks hvdrun for so many seconds. Says
// "training" after the first step, "hears N" for a signal, and "saved after step N" at the end.
// checkpoint deaf: the same without handlers; TERM is ignored.
// checkpoint lost: rank 1 dies of TERM; the others train on until they are told of it, and say what
// that is to them. They don't stop by themselves: they may hear TERM before it has reached rank 1.
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "hvd/hvd.hpp"

namespace {

volatile std::sig_atomic_t heard = 0;

void Hear(int number) { heard = number; }

void Say(const std::string& what) {
  std::printf("rank %d %s\n", hvd::rank(), what.c_str());
  std::fflush(stdout);
}

bool AllAgreeToStop() {
  int32_t stop = heard != 0 ? 1 : 0;
  hvd::allreduce(&stop, 1, hvd::Op::kMax, "stop");
  return stop != 0;
}

void Train(double seconds, bool stops) {
  float gradient[4] = {1, 2, 3, 4};
  for (int step = 1;; ++step) {
    usleep(static_cast<useconds_t>(1000 * (hvd::rank() + 1)));  // the compute
    hvd::allreduce(gradient, 4, hvd::Op::kAverage, "gradient");
    if (step == 1) Say("training");
    if (!stops || !AllAgreeToStop()) continue;
    Say("hears " + std::to_string(heard));
    usleep(static_cast<useconds_t>(seconds * 1e6));  // the save
    hvd::barrier();
    return Say("saved after step " + std::to_string(step));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "0";
  const char* const rank = std::getenv("HVD_RANK");
  const bool dies = kind == "lost" && rank != nullptr && std::strcmp(rank, "1") == 0;
  for (const int number : {SIGTERM, SIGUSR1}) {
    if (!dies) std::signal(number, kind == "deaf" ? SIG_IGN : Hear);
  }
  try {
    hvd::Session session;
    if (argc > 2) hvd::set_grace(std::atof(argv[2]));
    Train(std::atof(kind.c_str()), kind != "lost");
  } catch (const hvd::Error& error) {
    std::printf("rank %s is told: %s\n", std::getenv("HVD_RANK"), error.what());
    return 3;
  }
  return 0;
}
