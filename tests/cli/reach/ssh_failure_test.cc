// SPDX-License-Identifier: Apache-2.0
#include "cli/reach/ssh_failure.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"

namespace hvd::cli {
namespace {

constexpr int Exited(int code) { return code << 8; }

struct Case {
  int status;
  const char* errors;
  StartFault fault;
};

// OpenSSH 9.2 prints these words.
const Case kCases[] = {
    {Exited(255), "ssh: Could not resolve hostname nod1: Name or service not known\r\n",
     StartFault::kUnknownHost},
    {Exited(255), "ssh: connect to host n1 port 22: Connection refused\r\n", StartFault::kRefused},
    {Exited(255), "ssh: connect to host n1 port 22: Connection timed out\r\n",
     StartFault::kTimedOut},
    {Exited(255), "Connection timed out during banner exchange\r\n", StartFault::kTimedOut},
    {Exited(255), "ssh: connect to host n1 port 22: No route to host\r\n", StartFault::kNoRoute},
    {Exited(255), "ssh: connect to host n1 port 22: Network is unreachable\r\n",
     StartFault::kNoRoute},
    {Exited(255), "ann@n1: Permission denied (publickey).\r\n", StartFault::kDenied},
    {Exited(255),
     "Received disconnect from 10.0.0.1 port 22:2: Too many authentication failures\r\n"
     "Disconnected from 10.0.0.1 port 22\r\n",
     StartFault::kTooManyKeys},
    {Exited(255),
     "No ED25519 host key is known for n1 and you have requested strict checking.\r\n"
     "Host key verification failed.\r\n",
     StartFault::kHostKeyUnknown},
    {Exited(255),
     "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\r\nHost key verification failed.\r\n",
     StartFault::kHostKeyChanged},
    {Exited(255), "kex_exchange_identification: Connection closed by remote host\r\n",
     StartFault::kOverloaded},
    {Exited(255), "kex_exchange_identification: read: Connection reset by peer\r\n",
     StartFault::kOverloaded},
    {Exited(255), "Connection closed by 10.0.0.1 port 22\r\n", StartFault::kOverloaded},
    {Exited(127), "hvdd-not-found: PATH=/usr/bin:/bin\n", StartFault::kHvddMissing},
    {Exited(127), "sh: 1: exec: not found\n", StartFault::kHvddMissing},
    // An agent that does not understand the command shows it.
    {Exited(1), "sleep: invalid: 'exec /bin/sh -c 'echo \"hvdd-not-found: PATH=$PATH\" >&2'\n",
     StartFault::kHvddFailed},
    {Exited(127), "Welcome\nhvdd-not-found: PATH=/bin\n", StartFault::kHvddMissing},
    {Exited(1), "rbash: exec: restricted\n", StartFault::kRestrictedShell},
    {Exited(1), "bash: /bin/sh: restricted: cannot specify `/' in command names\n",
     StartFault::kRestrictedShell},
    // Banners.
    {Exited(127), "Use of this system is restricted to authorized users\n",
     StartFault::kHvddMissing},
    {Exited(255), "NOTICE: restricted system\n", StartFault::kUnknown},
    {Exited(1), "This account is currently not available.\n", StartFault::kRestrictedShell},
    {Exited(0), "", StartFault::kRestrictedShell},
    {Exited(127), "hvdrun-cannot-execute: ssh: No such file or directory\n",
     StartFault::kShellMissing},
    {Exited(255), "something new\n", StartFault::kUnknown},
    {Exited(3), "", StartFault::kHvddFailed},
    {9, "", StartFault::kHvddFailed},
};

TEST_CASE("what happens after the login is no fault of the login") {
  StartEnd end = {Exited(255), "", "", "ssh", "n1", "/x", true};
  CHECK(ExplainStartFailure(end).fault == StartFault::kHvddKilled);
  end.errors = "Connection closed by 10.0.0.1 port 22\r\n";
  CHECK(ExplainStartFailure(end).fault == StartFault::kHvddKilled);
  end.wait_status = Exited(137);  // as an agent tells it
  CHECK(ExplainStartFailure(end).fault == StartFault::kHvddKilled);
  end.wait_status = Exited(125);
  end.errors = "hvdd: this host lets it open only 20 files, and it needs 64\n";
  CHECK(ExplainStartFailure(end).fault == StartFault::kFewFiles);
}

TEST_CASE("the end of a link is told by how its remote shell ended") {
  CHECK(ExplainLinkEnd(9, "", "n1").cause == "hvdd was killed by signal 9 (Killed)");
  CHECK(ExplainLinkEnd(Exited(255), "ssh", "n1").cause.find("the connection broke") !=
        std::string::npos);
  // hvdd ends well only when it is told to, or sees our end.
  CHECK(ExplainLinkEnd(Exited(1), "ssh", "n1").remedy.empty());
  CHECK(ExplainLinkEnd(Exited(1), "kubectl", "p1").cause.find("to the API server broke") !=
        std::string::npos);
  CHECK(ExplainLinkEnd(Exited(0), "qrsh", "n1").cause.find("connection of qrsh broke") !=
        std::string::npos);
  CHECK(ExplainLinkEnd(Exited(0), "ssh", "n1").cause.find("was not hvdd's") != std::string::npos);
  CHECK(ExplainLinkEnd(Exited(0), "ssh", "n1").remedy.find("start-up files of n1") !=
        std::string::npos);
}

TEST_CASE("each way to fail has its cause and its remedy") {
  for (const Case& c : kCases) {
    INFO(c.errors);
    const StartFailure failure = ExplainStartFailure({c.status, c.errors, "", "ssh", "n1", "/x"});
    CHECK(failure.fault == c.fault);
    CHECK_FALSE(failure.cause.empty());
    CHECK_FALSE(failure.remedy.empty());
    // Equal causes are folded, so that they must not name the host; nothing may be left unfilled.
    CHECK(failure.cause.find("n1") == std::string::npos);
    for (const char* word : {"HOST", "SHELL", "SOUGHT"}) {
      CHECK((failure.cause + failure.remedy).find(word) == std::string::npos);
    }
  }
}

TEST_CASE("a login shell may say on stdout that it lets nobody in") {
  const StartFailure failure = ExplainStartFailure(
      {Exited(1), "", "This account is currently not available.\n", "ssh", "n1", "/x"});
  CHECK(failure.fault == StartFault::kRestrictedShell);
}

TEST_CASE("the words name the host and the places that were searched") {
  const StartFailure missing =
      ExplainStartFailure({Exited(127), "hvdd-not-found: PATH=/bin\n", "", "ssh", "n1", "/o/hvdd"});
  CHECK(missing.remedy.find("/o/hvdd") != std::string::npos);
  const StartFailure changed = ExplainStartFailure(
      {Exited(255), "REMOTE HOST IDENTIFICATION HAS CHANGED", "", "ssh", "n1", ""});
  CHECK(changed.remedy.find("ssh-keygen -R n1") != std::string::npos);
  const StartFailure local = ExplainStartFailure({Exited(3), "", "", "", "localhost", ""});
  CHECK(local.cause == "hvdd exited with code 3 before hvdd's first word");
}

StartEnd Denied(const char* errors) {
  StartEnd end = {Exited(255), errors, "", "ssh", "n1", "/x"};
  end.login = "ssh -p 2222 -i my.key ann@n1";
  end.target = "-p 2222 -i my.key ann@n1";
  return end;
}

TEST_CASE("advice keeps the user, the port and the key") {
  CHECK(ExplainStartFailure(Denied("ann@n1: Permission denied (publickey).\r\n"))
            .remedy.find("(ssh-copy-id -p 2222 -i my.key ann@n1)") != std::string::npos);
  CHECK(ExplainStartFailure(Denied("Host key verification failed.\r\n"))
            .remedy.find("(ssh -p 2222 -i my.key ann@n1)") != std::string::npos);
  CHECK(ExplainStartFailure(Denied("something new\n")).remedy ==
        "try by hand: ssh -p 2222 -i my.key ann@n1 true");
  StartEnd killed = Denied("");
  killed.logged_in = true;
  CHECK(ExplainStartFailure(killed).remedy.find("ssh -p 2222 -i my.key ann@n1 'ulimit -a'") !=
        std::string::npos);
}

TEST_CASE("a private key that others may read gets another mode") {
  const char* const words =
      "@         WARNING: UNPROTECTED PRIVATE KEY FILE!          @\r\n"
      "Permissions 0644 for '/home/ann/my.key' are too open.\r\n"
      "This private key will be ignored.\r\nLoad key \"/home/ann/my.key\": bad permissions\r\n";
  const std::string denied = absl::StrCat(words, "ann@n1: Permission denied (publickey).\r\n");
  const StartFailure failure = ExplainStartFailure(Denied(denied.c_str()));
  CHECK(failure.fault == StartFault::kKeyOpen);
  CHECK(failure.remedy == "chmod 600 /home/ann/my.key");
  StartEnd end = Denied(words);
  end.logged_in = true;  // by another key
  CHECK(ExplainStartFailure(end).fault == StartFault::kHvddKilled);
}

TEST_CASE("a host key that has changed is removed from the file where it is") {
  const auto remedy = [](const std::string& file, const std::string& name) {
    const std::string words = absl::StrCat(
        "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\nOffending ED25519 key in ",
        file, ":3\r\nHost key for ", name,
        " has changed and you have requested strict checking.\r\nHost key verification "
        "failed.\r\n");
    return ExplainStartFailure(Denied(words.c_str())).remedy;
  };
  CHECK(remedy("/etc/ssh/ssh_known_hosts", "n1")
            .find("ssh-keygen -f /etc/ssh/ssh_known_hosts -R n1 (as root") != std::string::npos);
  CHECK(remedy("/home/ann/.ssh/known_hosts", "[n1]:2222")
            .find("ssh-keygen -f /home/ann/.ssh/known_hosts -R \"[n1]:2222\"") !=
        std::string::npos);
}

TEST_CASE("an hvdd of another machine or system is told as that") {
  for (const char* words : {"hvdrun: 1: exec: /o/bin/hvdd: Exec format error\n",
                            "hvdrun: line 1: /o/bin/hvdd: cannot execute binary file: Exec format "
                            "error\n",
                            "hvdrun: 1: exec: /o/bin/hvdd: not found\n",
                            "/o/bin/hvdd: /lib/libc.so.6: version `GLIBC_2.38' not found\n"}) {
    StartEnd end = Denied(words);
    end.wait_status = Exited(126);
    end.logged_in = true;
    end.machine = "x86_64";
    CHECK(ExplainStartFailure(end).fault == StartFault::kForeignHvdd);
    if (std::string(words).find("format") == std::string::npos) continue;
    CHECK(ExplainStartFailure(end).remedy.find("ssh -p 2222 -i my.key ann@n1 uname -m (here it is "
                                               "x86_64)") != std::string::npos);
  }
}

TEST_CASE("last words are pointed at only where there are some") {
  const StartFailure silent = ExplainStartFailure({Exited(1), "", "", "/bin/false", "n1", ""});
  CHECK(silent.remedy == "it said nothing; try by hand: /bin/false n1 true");
  CHECK(ExplainStartFailure({Exited(1), "", "", "", "localhost", "/o/hvdd"}).remedy ==
        "it said nothing; does `hvdd --version` work here?");
  for (const auto& [errors, noise] : {std::pair("oh\n", ""), {"", "Welcome\n"}}) {
    CHECK_THAT(ExplainStartFailure({Exited(1), errors, noise, "agent", "n1", ""}).remedy,
               Catch::Matchers::Contains("its last words are above"));
  }
}

TEST_CASE("quoted lines are the last ones, without control bytes") {
  CHECK(QuoteLines("", 3).empty());
  CHECK(QuoteLines("a\nb\nc\n", 2) == "    | b\n    | c\n");
  CHECK(QuoteLines("\033[31mred\r\n", 2) == "    | \\x1b[31mred\n");
  CHECK(QuoteLines("\ta\rb\xc2\x9b|\x9b\n", 2) == "    | \ta\\rb\\u009b|\\x9b\n");
}

}  // namespace
}  // namespace hvd::cli
