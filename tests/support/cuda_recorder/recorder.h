// SPDX-License-Identifier: Apache-2.0
// Records the calls of a library: stands in its place, passes every call on to the real one, and
// writes a line for it. Any thread.
//
// HVD_RECORD names the file, to which ".PID" is added; without it calls are only passed on. A line
// is written when its call returns, and stays when the process is killed:
//   "1764000000.123456 4711 cuEventRecord(0x55d0c8, stream 0x55d1f0) = 0"
// seconds since 1970, thread, call, result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>

#include "runtime/gpu/nccl_library.h"

namespace hvd::rt {

// The real library's function. `library` is the name by which the recorder is linked to it. Ends
// the process, with a sentence, where there is none: nothing could be passed on.
void* FindRecorded(const char* library, const char* symbol);

// Whether lines are written; else the work of making them can be spared.
bool IsRecording();
void RecordLine(const std::string& call);

inline std::string RecordedValue(const char* text) {
  return text == nullptr ? "null" : "\"" + std::string(text) + "\"";
}
inline std::string RecordedValue(const NcclId&) { return "id"; }
template <class Value>
std::string RecordedValue(Value value) {
  if constexpr (std::is_pointer_v<Value>) {
    char text[32];
    snprintf(text, sizeof text, "%p", reinterpret_cast<const void*>(value));
    return (std::is_same_v<Value, CudaStream> ? "stream " : "") + std::string(text);
  } else {
    return std::to_string(static_cast<int64_t>(value));
  }
}

// A text that may be a template's argument.
template <size_t bytes>
struct SymbolName {
  constexpr SymbolName(const char (&given)[bytes]) {  // NOLINT(google-explicit-constructor)
    for (size_t i = 0; i < bytes; ++i) text[i] = given[i];
  }
  char text[bytes];
};

// Call(…) is the function `symbol` of the library `library`: passed on, and recorded. Its type is
// that of the table's entry.
template <SymbolName library, SymbolName symbol, class Function>
struct Recorded;
template <SymbolName library, SymbolName symbol, class Result, class... Arguments>
struct Recorded<library, symbol, Result (*)(Arguments...)> {
  static Result Call(Arguments... arguments) {
    static const auto real =
        reinterpret_cast<Result (*)(Arguments...)>(FindRecorded(library.text, symbol.text));
    const Result result = real(arguments...);
    if (!IsRecording()) return result;
    std::string all;
    ((all += (all.empty() ? "" : ", ") + RecordedValue(arguments)), ...);
    RecordLine(std::string(symbol.text) + "(" + all + ") = " + RecordedValue(result));
    return result;
  }
};

}  // namespace hvd::rt

// Exports `symbol` of the type that `table::entry` has, recorded. The loader asks the resolver
// which function it is, so that no signature is written down a second time.
#define HVD_RECORD(library, symbol, table, entry)                                     \
  extern "C" {                                                                        \
  void (*Resolve_##symbol())() {                                                      \
    return reinterpret_cast<void (*)()>(                                              \
        &hvd::rt::Recorded<library, #symbol, decltype(hvd::rt::table::entry)>::Call); \
  }                                                                                   \
  __attribute__((ifunc("Resolve_" #symbol), visibility("default"))) void symbol();    \
  }
