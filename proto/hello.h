// SPDX-License-Identifier: Apache-2.0
// The words around the links: protocol numbers, the hello line, and the name of the worker's way
// back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hvd {

// Raised when the two sides of a link can no longer understand each other.
inline constexpr uint32_t kLinkAProtocol = 7;
inline constexpr uint32_t kLinkBProtocol = 7;

// The daemon's first line on stdout, before gRPC: "<marker> <protocol> <version>[ <host>]\n". The
// marker is a random word given on its command line, so that a login shell's noise cannot contain
// it.
struct Hello {
  uint32_t protocol = 0;
  std::string version;
  std::string host = {};  // which one this is, the same for all its names; empty: not known
};
std::string FormatHello(std::string_view marker, const Hello& hello);
// Parses what follows the marker, up to and without the newline. False: not a hello.
bool ParseHello(std::string_view rest_of_line, Hello* hello);

// Value of HVD_LINK: how libhvd finds the daemon. `fd` with its inode is the inherited door: a
// datagram socket over which a worker sends one end of a stream socket pair of its own together
// with its token. `path` is the way back when a wrapper closed the door.
struct LinkName {
  int fd = -1;
  uint64_t inode = 0;
  std::string token;  // 32 hex digits, one a rank
  std::string path;
};
std::string FormatLinkName(const LinkName& link);
bool ParseLinkName(std::string_view text, LinkName* link);

}  // namespace hvd
