// SPDX-License-Identifier: Apache-2.0
#include "daemon/shim/exec_failure.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/descriptor.h"
#include "base/printable.h"
#include "proto/exit_code.h"

namespace hvd::daemon {
namespace {

using Step = ExecFailure::Step;

std::string PathOf(const SpawnOrder& order) {
  for (const std::string& entry : order.environment) {
    if (entry.rfind("PATH=", 0) == 0) return entry.substr(5);
  }
  return "";
}

// `file` as the rank sees it, which is in its working directory.
std::string Resolved(const std::string& file, const SpawnOrder& order) {
  return file[0] == '/' ? file : absl::StrCat(order.directory, "/", file);
}

mode_t KindOf(const std::string& path) {
  struct stat about;
  return stat(path.c_str(), &about) == 0 ? about.st_mode & S_IFMT : 0;
}

bool IsFile(const std::string& path) { return KindOf(path) == S_IFREG; }

// Returns the text behind "#!" in the first line; empty: it is no such script.
std::string ScriptLine(const std::string& path) {
  if (!IsFile(path)) return "";  // a FIFO would keep us waiting
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char bytes[256];
  const ssize_t size = file.valid() ? read(file.get(), bytes, sizeof(bytes)) : 0;
  const absl::string_view text(bytes, size > 0 ? static_cast<size_t>(size) : 0);
  if (!absl::StartsWith(text, "#!")) return "";
  return std::string(text.substr(2, text.find('\n') - 2));
}

// The file is there, and yet something of it was not found.
std::string DescribeInterpreter(const std::string& file, const std::string& line) {
  if (line.back() == '\r') {
    return absl::StrCat(
        "its first line ends in a carriage return, as in a DOS file; next: sed -i 's/\\r$//' ",
        Printable(file));
  }
  const std::string words(absl::StripLeadingAsciiWhitespace(line));
  return absl::StrCat("its first line asks for '",
                      Printable(words.substr(0, words.find_first_of(" \t"))),
                      "', which is not there: ", strerrordesc_np(ENOENT));
}

// The command names this path, and exec says that something is not there.
std::string DescribeMissing(const std::string& command, const std::string& path,
                            const SpawnOrder& order) {
  const std::string line = ScriptLine(path);
  if (!line.empty()) return DescribeInterpreter(command, line);
  if (IsFile(path)) {
    return absl::StrCat("it is there, but not the loader that it asks for; next: file ",
                        Printable(command));
  }
  return absl::StrCat(
      strerrordesc_np(ENOENT),
      command[0] == '/' ? "" : absl::StrCat(" in '", Printable(order.directory), "'"),
      "; it must be there on every host");
}

std::string DescribeCommand(int error, const SpawnOrder& order) {
  const std::string& command = order.argv[0];
  const bool is_path = absl::StrContains(command, '/') || command == "." || command == "..";
  const std::string path = Resolved(command, order);
  if (error == ENOENT && !is_path) {
    return absl::StrCat("command '", Printable(command), "' not found on PATH (",
                        Printable(PathOf(order)), ")",
                        IsFile(path) ? absl::StrCat("; there is ./", Printable(command),
                                                    " here: write ./", Printable(command))
                                     : "");
  }
  const std::string cannot = absl::StrCat("cannot run '", Printable(command), "': ");
  if (error == ENOENT) return cannot + DescribeMissing(command, path, order);
  if (error == EACCES && is_path && KindOf(path) == S_IFDIR) {
    return absl::StrCat(cannot, "it is a directory; name a program in it");
  }
  const bool plain = error == EACCES && is_path && IsFile(path) && access(path.c_str(), X_OK) != 0;
  return absl::StrCat(cannot, strerrordesc_np(error),
                      plain ? absl::StrCat("; next: chmod +x ", Printable(command)) : "");
}

}  // namespace

std::string DescribeExecFailure(const ExecFailure& failure, const SpawnOrder& order) {
  const std::string why = strerrordesc_np(failure.error);
  switch (failure.step) {
    case Step::kDirectory:
      return absl::StrCat("cannot enter the working directory '", Printable(order.directory),
                          "': ", why,
                          failure.error == EACCES ? "; the user there may not enter it"
                                                  : "; it must exist on every host");
    case Step::kDescriptors:
      return absl::StrCat("cannot arrange the descriptors of '", Printable(order.argv[0]),
                          "': ", why, "; a rank has descriptor ", order.door_fd,
                          ": look at the hard limit of open files there (ulimit -Hn)");
    case Step::kProcess:
      return absl::StrCat("cannot make a process for '", Printable(order.argv[0]), "': ", why,
                          RemedyFor(failure.error));
    case Step::kCommand:
      break;
  }
  return DescribeCommand(failure.error, order);
}

int ExecFailureCode(const ExecFailure& failure) {
  if (failure.step != Step::kCommand) return kExitLauncher;
  return failure.error == ENOENT || failure.error == ENOTDIR ? 127 : 126;
}

absl::string_view RemedyFor(int error) {
  switch (error) {
    case EMFILE:
      return "; raise the hard limit of open files there (ulimit -Hn)";
    case EAGAIN:
      return "; look at the limit of processes (ulimit -u, the cgroup's pids.max)";
    case EFBIG:
      return "; raise the limit of files' sizes there (ulimit -f)";
    case ENOMEM:
      return "; look at the memory that is free there, and its limit (ulimit -v)";
    default:
      return "";
  }
}

}  // namespace hvd::daemon
