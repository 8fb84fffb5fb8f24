// SPDX-License-Identifier: Apache-2.0
// thrown WHAT: rank 1 throws while WHAT of it is in flight (handle, gather, gradients), where its
// other ranks never bring their part; they wait for rank 1 elsewhere. "caught": what it throws is
// caught inside the session, when all that is in flight has been done.
#include <cstdio>
#include <stdexcept>
#include <string>

#include "hvd/hvd.hpp"

namespace {

[[noreturn]] void Throw() { throw std::runtime_error("bad batch"); }

void ThrowWith(const std::string& what) {
  std::vector<float> data(10, 1);
  if (what == "handle") {
    hvd::Handle handle = hvd::allreduce_async(data, hvd::Op::kSum, "mine");
    Throw();
  } else if (what == "gather") {
    hvd::GatherHandle<float> handle = hvd::allgather_async(data.data(), 10, 1, "mine");
    Throw();
  } else if (what == "gradients") {
    hvd::GradientOptions options;
    options.chunk_bytes = 16;
    hvd::Gradients<float> gradients({1000, 1000}, options);
    gradients.ready(0);
    Throw();
  }
}

// Work that is done, or was never begun, is no reason to leave.
void CatchInside() {
  hvd::Gradients<float> gradients({10});
  try {
    std::vector<float> data(10, 1);
    hvd::Handle handle = hvd::allreduce_async(data, hvd::Op::kSum, "all of us");
    gradients.ready(0);
    gradients.wait();
    hvd::barrier();  // now what was submitted before is done
    hvd::Gradients<float> unused({10});
    Throw();
  } catch (const std::runtime_error&) {
  }
  hvd::barrier();
  std::printf("rank %d goes on\n", hvd::rank());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  int rank = -1;
  try {
    hvd::Session session;
    rank = hvd::rank();
    if (what == "caught") {
      CatchInside();
    } else if (rank == 1) {
      ThrowWith(what);
    } else {
      float value = 1;
      hvd::allreduce(&value, 1, hvd::Op::kSum, "another");
    }
  } catch (const hvd::Error& error) {
    std::printf("rank %d was told %s: %s\n", rank, hvd_status_name(error.code()), error.what());
    return 0;  // so that the verdict is about rank 1
  } catch (const std::exception& error) {
    std::printf("rank %d: %s\n", rank, error.what());
    return 3;
  }
  return 0;
}
