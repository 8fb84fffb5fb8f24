// SPDX-License-Identifier: Apache-2.0
// What libhvd tells hvdrun of ranks that another launcher has started: where they are, and how the
// daemons of their hosts are reached. Pure.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

// The variable by which hvdrun --adopt gets it. Ranks never see it: it holds secrets.
inline constexpr const char* kAdoptionVariable = "HVD_ADOPTION";
// The variable by which the daemon that a rank of another host has started gets its secret: hex
// digits.
inline constexpr const char* kAwaitSecretVariable = "HVD_AWAIT_SECRET";

// How long one rank waits for the others to call hvd's init, in seconds: as MPI's, theirs may come
// late.
inline constexpr int kAdoptionPatienceS = 300;

// A host, and the daemon there that waits for one connection.
struct AdoptedHost {
  std::string name;
  int ranks = 0;
  int port = 0;                        // 0: none waits; the host is reached another way
  std::string secret;                  // hex digits; both sides prove that they know it
  std::vector<std::string> addresses;  // numeric
  // Its ranks, ascending, where the launcher has numbered them in turn over the hosts. Empty, for
  // all hosts: they follow those of the host before.
  std::vector<int> numbers = {};
  bool operator==(const AdoptedHost&) const = default;
};

struct Adoption {
  std::string by;                  // the launcher's name: "mpirun"
  std::string key;                 // of the claims, the same for all hosts: letters and digits
  std::vector<AdoptedHost> hosts;  // in the order of ranks; the first one is hvdrun's own
  bool operator==(const Adoption&) const = default;
};

std::string FormatAdoption(const Adoption& adoption);
// Nothing: it is not such a text.
std::optional<Adoption> ParseAdoption(std::string_view text);

// Whether words of these texts may contain it: not empty, printable, without blanks and commas.
bool IsAdoptionWord(std::string_view word);

// The name, in the abstract namespace of its host, of the socket at which this rank waits for its
// daemon.
std::string ClaimName(std::string_view key, unsigned user, int rank);

// Where that is.
struct ClaimAddress {
  sockaddr_un name = {};
  socklen_t size = 0;

  explicit ClaimAddress(std::string_view claim);
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

// All that a rank says there; the daemon has sent the rank's place and door before.
struct ClaimWord {
  enum Kind : int32_t { kTaken = 1, kEnds = 2 } kind = kTaken;
  int32_t number = 0;  // of its parent's process; its exit code
};

}  // namespace hvd
