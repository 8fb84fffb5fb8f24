// SPDX-License-Identifier: Apache-2.0
#include "cli/reach/ssh_failure.h"

#include <string.h>
#include <sys/wait.h>

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/printable.h"
#include "base/process_end.h"
#include "cli/reach/agent_failure.h"

namespace hvd::cli {
namespace {

// One row: the words by which ssh says it, and what we say. Rows are tried in order, so a precise
// one stands before a vague one. Words in capitals are replaced (Fill).
struct Row {
  const char* words;
  StartFault fault;
  const char* cause;
  const char* remedy;
};

constexpr size_t kMostOfLine = 400;

constexpr const char* kKeyRemedy =
    "put your public key there (ssh-copy-id TARGET), load it into an agent, or name it with -i; "
    "hvdrun never asks for a password";

constexpr Row kRows[] = {
    {"REMOTE HOST IDENTIFICATION HAS CHANGED", StartFault::kHostKeyChanged,
     "its host key is not the one in known_hosts",
     "make sure that it is the right machine, then remove the old key: ssh-keygen -R HOST"},
    {"No matching host key", StartFault::kHostKeyUnknown, "no common host key type",
     "compare HostKeyAlgorithms of the ssh client with the server's"},
    {"Host key verification failed", StartFault::kHostKeyUnknown, "its host key is unknown",
     "log in once by hand and accept the key (LOGIN), or add it to known_hosts"},
    {"Could not resolve hostname", StartFault::kUnknownHost, "unknown host name",
     "check the spelling in the host list, /etc/hosts, DNS or ~/.ssh/config"},
    {"Too many authentication failures", StartFault::kTooManyKeys,
     "too many keys were offered before the right one",
     "name the key with -i and set IdentitiesOnly=yes for HOST in ~/.ssh/config"},
    {"Permission denied", StartFault::kDenied, "ssh login denied", kKeyRemedy},
    {"Connection refused", StartFault::kRefused, "connection refused",
     "is sshd running there, and on that port (-p)?"},
    {"No route to host", StartFault::kNoRoute, "no route to the host",
     "is it up, and does this network reach it?"},
    {"Network is unreachable", StartFault::kNoRoute, "network unreachable",
     "is this machine on the right network?"},
    {"Connection timed out", StartFault::kTimedOut, "no answer to ssh",
     "is it up? is a firewall in between? a longer --start-timeout waits longer"},
    {"Operation timed out", StartFault::kTimedOut, "no answer to ssh",
     "is it up? is a firewall in between? a longer --start-timeout waits longer"},
    {"timed out during banner exchange", StartFault::kTimedOut, "sshd accepts but does not answer",
     "is the machine overloaded? a longer --start-timeout waits longer"},
    {"kex_exchange_identification", StartFault::kOverloaded, "sshd dropped the connection",
     "raise MaxStartups in its sshd_config, or see its log for a denied address"},
    {"ssh_exchange_identification", StartFault::kOverloaded, "sshd dropped the connection",
     "raise MaxStartups in its sshd_config, or see its log for a denied address"},
    {"Connection closed by", StartFault::kOverloaded, "sshd dropped the connection",
     "raise MaxStartups in its sshd_config, or see its log for a denied address"},
    {"Connection reset by", StartFault::kOverloaded, "sshd dropped the connection",
     "raise MaxStartups in its sshd_config, or see its log for a denied address"},
    {"\nhvdd: this host lets it open only", StartFault::kFewFiles,
     "its limit of open files is too low for hvdd",
     "raise its hard limit (ulimit -Hn: /etc/security/limits.conf, or a line of a start-up file "
     "there)"},
    // Within a line they are our own command, shown by an agent that does not understand it.
    {"\nhvdd-not-found:", StartFault::kHvddMissing, "hvdd is not installed there",
     "looked for it at SOUGHT; install hvd at the same place as here, or name it with --prefix "
     "DIR"},
    {"Exec format error", StartFault::kForeignHvdd, "hvdd there is for another kind of machine",
     "install hvd there as it is built for that machine: LOGIN uname -m (here it is MACHINE)"},
    {"/hvdd: not found", StartFault::kForeignHvdd,
     "hvdd there is for another system: the loader that it asks for is missing",
     "install hvd there as it is built for that system"},
    {"required file not found", StartFault::kForeignHvdd,
     "hvdd there is for another system: the loader that it asks for is missing",
     "install hvd there as it is built for that system"},
    {"version `GLIBC", StartFault::kForeignHvdd, "hvdd there needs a newer C library",
     "install hvd there as it is built for that system"},
    {"This account is currently not available", StartFault::kRestrictedShell,
     "the login shell there lets nobody in", "use an account with a usual login shell"},
    // As bash says it: the bare word is in many a login's banner.
    {"exec: restricted", StartFault::kRestrictedShell, "the login shell there is restricted",
     "use an account with a usual login shell"},
    {"restricted: cannot", StartFault::kRestrictedShell, "the login shell there is restricted",
     "use an account with a usual login shell"},
};

StartFailure Fill(const StartEnd& end, StartFault fault, absl::string_view cause,
                  absl::string_view remedy) {
  const auto fill = [&end](absl::string_view text) {
    const std::string login =
        end.login.empty() ? absl::StrCat(end.shell, " ", end.host) : end.login;
    return absl::StrReplaceAll(text,
                               {{"HOST", Printable(end.host)},
                                {"LOGIN", Printable(login)},
                                {"MACHINE", Printable(end.machine)},
                                {"SHELL", Printable(end.shell)},
                                {"SOUGHT", Printable(end.sought)},
                                {"TARGET", Printable(end.target.empty() ? end.host : end.target)}});
  };
  return {fault, fill(cause), fill(remedy)};
}

// Returns the text that stands between two others; empty: it is not there.
std::string Between(absl::string_view text, absl::string_view before, absl::string_view after) {
  const size_t begin = text.find(before);
  if (begin == text.npos) return "";
  const absl::string_view rest = text.substr(begin + before.size());
  const size_t end = rest.find(after);
  return end == rest.npos ? "" : std::string(rest.substr(0, end));
}

// "Offending ED25519 key in /etc/ssh/ssh_known_hosts:3" and "Host key for [n1]:2222 has changed".
std::string OldKeyRemedy(const StartEnd& end) {
  const std::string place =
      Between(Between(end.errors, "Offending ", "\n") + "\n", " key in ", "\n");
  const std::string file = Printable(place.substr(0, place.rfind(':')));
  const std::string told = Between(end.errors, "Host key for ", " has changed");
  const std::string name = told.empty() ? "HOST" : Printable(told);
  return absl::StrCat(
      "make sure that it is the right machine, then remove the old key: ", "ssh-keygen ",
      file.empty() ? "" : absl::StrCat("-f ", file, " "), "-R ",
      name[0] == '[' ? absl::StrCat("\"", name, "\"") : name,
      absl::StartsWith(file, "/etc/") ? " (as root: it is for all users here)" : "");
}

// The same fault in ssh's further words.
StartFailure FillRow(const StartEnd& end, const Row& row) {
  if (row.fault == StartFault::kHostKeyChanged) {
    return Fill(end, row.fault, row.cause, OldKeyRemedy(end));
  }
  const bool denied = row.fault == StartFault::kDenied || row.fault == StartFault::kTooManyKeys;
  if (denied && absl::StrContains(end.errors, "UNPROTECTED PRIVATE KEY FILE")) {
    const std::string file = Printable(Between(end.errors, " for '", "' are too open"));
    return Fill(end, StartFault::kKeyOpen,
                "the private key may be read by others, so ssh does not use it",
                absl::StrCat("chmod 600 ", file.empty() ? "it" : file));
  }
  return Fill(end, row.fault, row.cause, row.remedy);
}

// Another remote shell has words of its own.
bool IsOther(absl::string_view shell) {
  return !shell.empty() && shell != "ssh" && !absl::EndsWith(shell, "/ssh");
}

// They come before our command runs, so what it says later is something else.
bool IsOfLogin(StartFault fault) {
  return fault >= StartFault::kUnknownHost && fault <= StartFault::kOverloaded;
}

}  // namespace

std::string QuoteLines(absl::string_view text, int lines) {
  std::vector<absl::string_view> all = absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  const size_t first = all.size() > static_cast<size_t>(lines) ? all.size() - lines : 0;
  std::string quoted;
  if (text.empty()) return quoted;
  for (size_t i = first; i < all.size(); ++i) {
    const absl::string_view line = absl::StripSuffix(all[i], "\r");
    absl::StrAppend(&quoted, "    | ", PrintableLines({line.data(), line.size()}, kMostOfLine),
                    "\n");
  }
  return quoted;
}

LinkEnd ExplainForeignBytes(const std::string& shell, const std::string& host) {
  return {absl::StrCat("what came over ", shell,
                       " was not hvdd's: something else there prints to the login's stdout"),
          absl::StrCat("look for a background job in the shell start-up files of ", host,
                       " (.bashrc), and give it an output of its own (>/dev/null 2>&1)")};
}

LinkEnd ExplainLinkEnd(int wait_status, const std::string& shell, const std::string& host) {
  const std::string words =
      absl::StrCat(shell.empty() ? "hvdd" : shell, " ", DescribeEnd(wait_status));
  if (shell.empty() || !WIFEXITED(wait_status)) return {words, ""};
  // With 0 it ends, too, when what it spoke to there is gone.
  if (shell == "qrsh" && WEXITSTATUS(wait_status) == 0) {
    return {"the connection of qrsh broke, or Grid Engine's shepherd was killed there",
            absl::StrCat("is ", host, " up (qhost -h ", host,
                         ")? who kills there? see its kernel's log (dmesg)")};
  }
  // hvdd has seen our end, which was none: gRPC broke the link because of what came over it.
  if (WEXITSTATUS(wait_status) == 0) return ExplainForeignBytes(shell, host);
  if (shell == "kubectl" && WEXITSTATUS(wait_status) == 1) {
    return {absl::StrCat(words, ": its connection to the API server broke"),
            absl::StrCat("is the pod ", host,
                         " there (kubectl get pods)? are the API server and the proxies before it "
                         "well?")};
  }
  if (WEXITSTATUS(wait_status) != 255) return {words, ""};
  return {absl::StrCat(words, ": the connection broke, or hvdd was killed there"),
          absl::StrCat("is ", host, " up? who kills there? see its kernel's log (dmesg)")};
}

bool MayComeYet(StartFault fault) {
  return fault == StartFault::kUnknownHost || fault == StartFault::kRefused ||
         fault == StartFault::kTimedOut || fault == StartFault::kNoRoute ||
         fault == StartFault::kOverloaded;
}

StartFailure ExplainStartFailure(const StartEnd& end) {
  const int code = WIFEXITED(end.wait_status) ? WEXITSTATUS(end.wait_status) : -1;
  if (absl::StrContains(end.errors, "hvdrun-cannot-execute:")) {
    if (end.shell.empty()) {
      return Fill(end, StartFault::kShellMissing, "hvdd cannot be started",
                  "looked for it at SOUGHT");
    }
    return Fill(end, StartFault::kShellMissing, "SHELL cannot be started here",
                end.shell == "ssh"
                    ? "install the OpenSSH client, or name another remote shell with --rsh-agent"
                    : "is it on the PATH? --rsh-agent names it");
  }
  const auto fault = FindAgentFault(end.shell, end.errors);
  if (fault && !end.logged_in) return Fill(end, fault->fault, fault->cause, fault->remedy);
  const std::string errors = absl::StrCat("\n", end.errors);
  for (const Row& row : kRows) {
    const bool said_at_login =  // nologin says it on stdout
        row.fault == StartFault::kRestrictedShell && absl::StrContains(end.noise, row.words);
    if ((end.logged_in || IsOther(end.shell)) && IsOfLogin(row.fault)) continue;
    if (said_at_login || absl::StrContains(errors, row.words)) {
      return FillRow(end, row);
    }
  }
  if (code == 127) {
    return Fill(end, StartFault::kHvddMissing, "a command was not found there",
                "does `LOGIN /bin/sh -c true` work?");
  }
  if (end.logged_in && (code == 255 || code >= 128 || code < 0)) {
    return Fill(end, StartFault::kHvddKilled,
                "the login worked, but hvdd was killed there, or the connection broke, before its "
                "first word",
                "who kills there? see its kernel's log (dmesg: out of memory?) and the limits of a "
                "login: LOGIN 'ulimit -a'");
  }
  if (!end.shell.empty() && code == 255) {
    return Fill(end, StartFault::kUnknown, "SHELL could not log in", "try by hand: LOGIN true");
  }
  if (code == 0 && !end.shell.empty()) {
    return Fill(end, StartFault::kRestrictedShell, "the login shell ended without running hvdd",
                "does `LOGIN /bin/sh -c true` work? a start-up file there may exit");
  }
  const bool silent = end.errors.empty() && end.noise.empty();
  return Fill(end, StartFault::kHvddFailed,
              absl::StrCat(end.shell.empty() || end.logged_in ? "hvdd" : Printable(end.shell), " ",
                           DescribeEnd(end.wait_status), " before hvdd's first word"),
              !silent             ? "its last words are above; run with --verbose for more"
              : end.shell.empty() ? "it said nothing; does `hvdd --version` work here?"
                                  : "it said nothing; try by hand: LOGIN true");
}

}  // namespace hvd::cli
