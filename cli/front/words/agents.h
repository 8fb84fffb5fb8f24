// SPDX-License-Identifier: Apache-2.0
// Remote shells that hvdrun knows by name: how each is called, and what its words mean. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hvd::cli {

struct Agent {
  const char* name;     // as --rsh-agent gives it
  const char* program;  // that must be here
  const char* script;   // for /bin/sh: $1 is the host, $2 what its shell is to run
  const char* login;    // how a person gets there; the host and a command follow
};

// Null: the word is a command line of the person's own. ("ssh" is none of these: it has options.)
const Agent* FindAgent(std::string_view word);

// The command that is run, up to and without the host.
std::vector<std::string> ArgvOf(const Agent& agent);

}  // namespace hvd::cli
