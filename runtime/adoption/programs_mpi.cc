// SPDX-License-Identifier: Apache-2.0
#include "runtime/adoption/programs_mpi.h"

#include <dlfcn.h>

#include "runtime/gpu/shared_library.h"

namespace hvd::rt {
namespace {

constexpr char kFunction[] = "MPI_Initialized";

// `asks` is that function, which is the same in the ABI of every MPI, and may be called at any
// time, also when MPI has ended. Null: there is none.
bool SaysYes(void* asks) {
  int flag = 0;
  return asks != nullptr && reinterpret_cast<int (*)(int*)>(asks)(&flag) == 0 && flag != 0;
}

}  // namespace

// A program that is linked with MPI has it for all to see; a Python module's is found by its name.
bool ProgramsMpiHasBegun() {
  if (SaysYes(dlsym(RTLD_DEFAULT, kFunction))) return true;
  for (const char* name :
       {"libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.0", "libmpi_abi.so.1"}) {
    const auto loaded = SharedLibrary::OpenLoaded(name);
    if (loaded.ok() && SaysYes(loaded->Find(kFunction))) return true;
  }
  return false;
}

}  // namespace hvd::rt
