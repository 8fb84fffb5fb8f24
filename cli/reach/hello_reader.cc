// SPDX-License-Identifier: Apache-2.0
#include "cli/reach/hello_reader.h"

#include <algorithm>

namespace hvd::cli {

HelloScan ScanHello(std::string_view peeked, std::string_view marker) {
  HelloScan scan;
  const size_t at = peeked.find(marker);
  if (at == peeked.npos) {
    // The longest tail that may be the marker's beginning stays.
    size_t tail = std::min(peeked.size(), marker.size() - 1);
    while (tail > 0 && peeked.substr(peeked.size() - tail) != marker.substr(0, tail)) --tail;
    scan.noise = peeked.size() - tail;
    return scan;
  }
  scan.noise = at;
  const size_t newline = peeked.find('\n', at);
  if (newline == peeked.npos) {
    if (peeked.size() - at > marker.size() + 256) scan.state = HelloScan::kGarbled;
    return scan;
  }
  scan.consume = newline + 1;
  const size_t rest = at + marker.size();
  const bool parsed = ParseHello(peeked.substr(rest, newline - rest), &scan.hello);
  scan.state = parsed ? HelloScan::kFound : HelloScan::kGarbled;
  return scan;
}

bool IsSettingsFrame(std::string_view bytes) {
  if (bytes.size() < kFirstFrameBytes) return false;
  return bytes[3] == 4 && bytes[4] == 0 && bytes.substr(5, 4) == std::string_view("\0\0\0\0", 4);
}

}  // namespace hvd::cli
