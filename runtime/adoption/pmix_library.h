// SPDX-License-Identifier: Apache-2.0
// OpenPMIx, by which the processes of mpirun and of srun find one another: the part of its ABI that
// is used here, declared by hand, so that no header of PMIx's is needed to build. The ABI is that
// of libpmix.so.2, which every release since 2.0 has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/settings/environment.h"
#include "runtime/gpu/shared_library.h"

namespace hvd::rt {

enum PmixResult : int {
  kPmixSuccess = 0,
  kPmixTimeout = -24,
  kPmixNotFound = -46,
};

enum PmixType : uint16_t { kPmixBool = 1, kPmixString = 3, kPmixInt = 6, kPmixUint32 = 14 };

inline constexpr uint8_t kPmixGlobal = 3;                // for processes of all hosts
inline constexpr uint32_t kPmixEveryRank = 0xfffffffeu;  // PMIX_RANK_WILDCARD

struct PmixProcess {
  char space[256];
  uint32_t rank;
};

struct PmixValue {
  uint16_t type;
  union {
    bool flag;
    int integer;
    uint32_t uint32;
    char* string;
    uint64_t whole[3];  // the size of PMIx's largest
  } data;
};

struct PmixInfo {
  char key[512];
  uint32_t flags;
  PmixValue value;
};

static_assert(sizeof(PmixProcess) == 260 && offsetof(PmixProcess, rank) == 256);
static_assert(sizeof(PmixValue) == 32 && offsetof(PmixValue, data) == 8);
static_assert(sizeof(PmixInfo) == 552 && offsetof(PmixInfo, value) == 520);

// The function that PMIx calls once a fence is over, in a thread of its own.
using PmixDone = void (*)(int result, void* context);

struct PmixFunctions {
  int (*init)(PmixProcess* self, PmixInfo* infos, size_t count);
  int (*finalize)(const PmixInfo* infos, size_t count);
  int (*put)(uint8_t scope, const char* key, PmixValue* value);
  int (*commit)();
  int (*begin_fence)(const PmixProcess* processes, size_t count, const PmixInfo* infos,
                     size_t info_count, PmixDone done, void* context);
  // The value is the caller's, to be freed as by free().
  int (*get)(const PmixProcess* process, const char* key, const PmixInfo* infos, size_t count,
             PmixValue** value);
  const char* (*error_string)(int result);
};

// Where the library is looked for, in this order, unless this process has loaded it already.
struct PmixPlaces {
  std::vector<std::string> beside;  // paths near the launcher
  std::string system = "libpmix.so.2";
};

// Returns the places for a process with this environment.
PmixPlaces FindPmixPlaces(const EnvironmentLookup& environment);

class PmixLibrary {
 public:
  // NotFound: none of the places has one; says what each answered. Unimplemented: it is too old.
  static absl::StatusOr<PmixLibrary> Load(const PmixPlaces& places);

  const PmixFunctions& calls() const { return calls_; }
  const std::string& path() const { return library_.path(); }
  // OK, or "PMIx_Get: NOT-FOUND (libpmix.so.2)".
  absl::Status Check(int result, const char* what) const;

 private:
  static absl::StatusOr<SharedLibrary> Find(const PmixPlaces& places);
  absl::Status FindFunctions();

  SharedLibrary library_;
  PmixFunctions calls_ = {};
};

// An option of a call.
PmixInfo PmixOption(const char* key, PmixType type);

}  // namespace hvd::rt
