// SPDX-License-Identifier: Apache-2.0
// Why a daemon could not be started: exit status and words of the remote shell in, cause and remedy
// out. Pure.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hvd::cli {

enum class StartFault {
  kUnknown,
  kUnknownHost,
  kRefused,
  kTimedOut,
  kNoRoute,
  kDenied,
  kKeyOpen,  // the private key may be read by others, and ssh does not use it
  kTooManyKeys,
  kHostKeyUnknown,
  kHostKeyChanged,
  kOverloaded,  // sshd's MaxStartups dropped the connection: the only fault worth another try
  kHvddMissing,
  kRestrictedShell,
  kShellMissing,  // the remote shell's own command does not exist here
  kHvddKilled,    // it started, and was killed before its hello, or the connection broke
  kForeignHvdd,   // hvdd there is for another machine or system
  kFewFiles,      // its limit of open files is too low
  kHvddFailed,    // it started and ended before its hello
};

// The facts that are known about a daemon's command that ended before the hello.
struct StartEnd {
  int wait_status = 0;
  absl::string_view errors;  // its stderr
  absl::string_view noise;   // what came on stdout before the marker
  std::string shell;         // "ssh" or the agent's first word; empty: a local daemon
  std::string host;
  std::string sought;      // places where hvdd was looked for
  bool logged_in = false;  // our command ran there
  // As a person writes it: "ssh -p 2222 me@host1", and what ssh's tools get, "-p 2222 me@host1".
  std::string login = {};
  std::string target = {};
  std::string machine = {};  // this one's, as uname says it
};

struct StartFailure {
  StartFault fault = StartFault::kUnknown;
  std::string cause;   // "connection refused", without the host's name: equal causes are folded
  std::string remedy;  // the next step, with the host's name
};

// Why a host was lost, as far as the end of its daemon's command tells.
struct LinkEnd {
  std::string cause;
  std::string remedy;  // may be empty
};
// `shell` as in StartEnd.
LinkEnd ExplainLinkEnd(int wait_status, const std::string& shell, const std::string& host);
// The link broke although neither side left it.
LinkEnd ExplainForeignBytes(const std::string& shell, const std::string& host);

StartFailure ExplainStartFailure(const StartEnd& end);

// Whether the fault may be that of a host that is only being made: its name and its sshd come later
// than hvdrun.
bool MayComeYet(StartFault fault);

// The last `lines` lines of `text`, each behind "    | ", unprintable bytes as '?'. Empty for no
// text.
std::string QuoteLines(absl::string_view text, int lines);

}  // namespace hvd::cli
