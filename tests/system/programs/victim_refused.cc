// SPDX-License-Identifier: Apache-2.0
// The modes in which a call fails, and the rank decides how to go on.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "hvd/hvd.hpp"
#include "tests/system/programs/victim_modes.h"

namespace victim {
namespace {

// This process gets hardly more than it has.
void LimitMemory() {
  long pages = 0;
  FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld", &pages) != 1) std::abort();
  std::fclose(file);
  const rlim_t bytes = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE)) + (16 << 20);
  const rlimit limit = {bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::abort();
}

// out-of-memory RANK [result]: one rank has no room for what an Adasum needs besides the tensor, or
// for the result of an allgather.
int OutOfMemory(const Arguments& arguments) {
  Join();
  std::vector<float> data(8 << 20, 1);
  if (hvd::rank() == Number(arguments, 0, 1)) LimitMemory();
  for (const char* name : {"large", "later"}) {
    try {
      if (arguments.size() > 1) {
        hvd::allgather(data, name);
      } else {
        hvd::allreduce(data, hvd::Op::kAdasum, name);
      }
    } catch (const hvd::Error& error) {
      Say(error.what());
    }
  }
  hvd::shutdown();
  return 0;
}

// give-up CODE RANK: one rank has no memory for a sum, and ends with CODE, but only some time after
// rank 0, which that call has failed for it, has ended.
int GiveUp(const Arguments& arguments) {
  Join();
  const pid_t first = hvd::allgather(std::vector<int>{getpid()})[0];
  std::vector<float> data(8 << 20, 1);
  const bool gives_up = hvd::rank() == Number(arguments, 1, 1);
  if (gives_up) LimitMemory();
  try {
    hvd::allreduce(data, hvd::Op::kAdasum, "large");
  } catch (const hvd::Error&) {
    if (!gives_up) throw;
  }
  AwaitEnd(first);
  usleep(300000);  // so that whoever goes by the order of ends blames rank 0
  return Number(arguments, 0, 3);
}

// retry-init FILE: a rank whose hvd_init fails removes the file that it failed for, and tries
// again.
int RetryInit(const Arguments& arguments) {
  if (hvd_init(nullptr) != HVD_OK) {
    std::printf("refused: %s\n", hvd_last_error());
    if (hvd_is_initialized() != 0 || std::remove(arguments.at(0).c_str()) != 0) return 3;
    hvd::init();
  }
  Sum();
  Say("joined");
  hvd::shutdown();
  return 0;
}

// The error of an allreduce of `count` elements of type T; empty when there was none.
template <class T>
std::string ErrorOf(size_t count, hvd::Op op, const std::string& name) {
  std::vector<T> data(count, T(1));
  try {
    hvd::allreduce(data, op, name);
  } catch (const hvd::Error& error) {
    if (error.code() != HVD_ERR_MISMATCH) throw;
    return error.what();
  }
  return "";
}

std::string RootError() {
  float value = 1;
  try {
    hvd::broadcast(&value, 1, hvd::rank() == 0 ? 0 : 1, "bad.root");
  } catch (const hvd::Error& error) {
    if (error.code() != HVD_ERR_MISMATCH) throw;
    return error.what();
  }
  return "";
}

// mismatch: the ranks disagree on each thing in turn; all get the same error, and go on.
int Mismatch(const Arguments&) {
  hvd::Session session;
  const bool odd = hvd::rank() == hvd::size() - 1;
  const hvd::Op op = odd ? hvd::Op::kMax : hvd::Op::kSum;
  const std::vector<std::string> errors = {
      odd ? ErrorOf<double>(5, hvd::Op::kSum, "bad.dtype")
          : ErrorOf<float>(5, hvd::Op::kSum, "bad.dtype"),
      ErrorOf<float>(odd ? 6 : 5, hvd::Op::kSum, "bad.shape"),
      ErrorOf<float>(5, op, "bad.op"),
      RootError(),
  };
  for (const std::string& error : errors) {
    if (error.empty()) return 1;
    std::printf("error: %s\n", error.c_str());
  }
  Sum();
  Say("alive");
  return 0;
}

// duplicate: a name that is pending is refused at once, and only the second call fails.
int Duplicate(const Arguments&) {
  hvd::Session session;
  float first = 1, second = 1;
  if (hvd::rank() == 0) {
    hvd::Handle pending = hvd::allreduce_async(&first, 1, hvd::Op::kSum, "twice");
    bool refused = false;
    try {
      hvd::allreduce(&second, 1, hvd::Op::kSum, "twice");
    } catch (const hvd::Error& error) {
      refused = error.code() == HVD_ERR_DUPLICATE;
    }
    hvd::allreduce(&second, 1, hvd::Op::kSum, "refused");
    pending.wait();
    if (!refused) return 1;
  } else {
    // Only then, so that it is still pending on rank 0 when that submits it again.
    hvd::allreduce(&second, 1, hvd::Op::kSum, "refused");
    hvd::allreduce(&first, 1, hvd::Op::kSum, "twice");
  }
  Say("refused");
  return first == static_cast<float>(hvd::size()) ? 0 : 1;
}

}  // namespace

const std::map<std::string, Mode>& RefusedModes() {
  static const std::map<std::string, Mode> modes = {
      {"out-of-memory", OutOfMemory}, {"give-up", GiveUp},      {"retry-init", RetryInit},
      {"mismatch", Mismatch},         {"duplicate", Duplicate},
  };
  return modes;
}

}  // namespace victim
