// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cuda_recorder/recorder.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace hvd::rt {
namespace {

// -1: nothing is to be written.
int OpenRecord() {
  const char* name = getenv("HVD_RECORD");
  if (name == nullptr || *name == '\0') return -1;
  const std::string path = name + ("." + std::to_string(getpid()));
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file >= 0) return file;
  fprintf(stderr, "the recorder cannot write %s: give HVD_RECORD a name in a folder of yours\n",
          path.c_str());
  abort();
}

int Record() {
  static const int file = OpenRecord();
  return file;
}

}  // namespace

void* FindRecorded(const char* library, const char* symbol) {
  // Loaded already, with the recorder itself.
  void* const real = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  void* const found = real == nullptr ? nullptr : dlsym(real, symbol);
  if (found != nullptr) return found;
  fprintf(stderr, "the recorder finds no %s: let %s, beside it, be a link to the real library\n",
          symbol, library);
  abort();
}

bool IsRecording() { return Record() >= 0; }

void RecordLine(const std::string& call) {
  using std::chrono::microseconds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t us = std::chrono::duration_cast<microseconds>(now).count();
  char when[64];
  snprintf(when, sizeof when, "%lld.%06lld %d ", static_cast<long long>(us / 1000000),
           static_cast<long long>(us % 1000000), gettid());
  const std::string line = when + call + "\n";
  // In one piece, so that threads do not mix theirs. A full disk shortens the record, no more.
  if (write(Record(), line.data(), line.size()) < 0) return;
}

}  // namespace hvd::rt
