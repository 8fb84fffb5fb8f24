// SPDX-License-Identifier: Apache-2.0
// A host's first words: login noise, the hello line, then gRPC. Pure; the reader peeks, so that not
// one byte of gRPC is taken.
#pragma once

#include <string>
#include <string_view>

#include "proto/hello.h"

namespace hvd::cli {

inline constexpr size_t kMaxHelloNoise = 64 * 1024;
inline constexpr size_t kFirstFrameBytes = 9;  // an HTTP/2 frame's header

struct HelloScan {
  enum State { kMore, kFound, kGarbled } state = kMore;
  size_t noise = 0;    // bytes before the marker; safe to take when kMore
  size_t consume = 0;  // kFound: bytes up to and with the hello's newline
  Hello hello;
};
// `peeked` starts at the first byte not yet taken.
HelloScan ScanHello(std::string_view peeked, std::string_view marker);

// Whether the kFirstFrameBytes after the hello begin an HTTP/2 SETTINGS frame (type 4, no flags,
// stream 0).
bool IsSettingsFrame(std::string_view bytes);

}  // namespace hvd::cli
