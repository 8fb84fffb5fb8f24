// The part of spawn.h that puts failures into words.
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/shim/spawn.h"

namespace hvd {
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

bool IsFile(const std::string& path) {
  struct stat about;
  return stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode);
}

// What stands behind "#!" in the first line; empty: it is no such script.
std::string ScriptLine(const std::string& path) {
  if (!IsFile(path)) return "";  // a FIFO would keep us waiting
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
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
        file);
  }
  const absl::string_view words = absl::StripLeadingAsciiWhitespace(line);
  return absl::StrCat("its first line asks for '", words.substr(0, words.find_first_of(" \t")),
                      "', which is not there: ", strerrordesc_np(ENOENT));
}

std::string DescribeCommand(int error, const SpawnOrder& order) {
  const std::string& command = order.argv[0];
  const bool is_path = absl::StrContains(command, '/');
  const std::string path = Resolved(command, order);
  if (error == ENOENT && !is_path) {
    return absl::StrCat(
        "command '", command, "' not found on PATH (", PathOf(order), ")",
        IsFile(path) ? absl::StrCat("; there is ./", command, " here: write ./", command) : "");
  }
  const std::string line = error == ENOENT ? ScriptLine(path) : "";
  if (!line.empty()) {
    return absl::StrCat("cannot run '", command, "': ", DescribeInterpreter(command, line));
  }
  const bool plain = error == EACCES && is_path && IsFile(path) && access(path.c_str(), X_OK) != 0;
  return absl::StrCat("cannot run '", command, "': ", strerrordesc_np(error),
                      plain ? absl::StrCat("; next: chmod +x ", command) : "");
}

}  // namespace

std::string DescribeExecFailure(const ExecFailure& failure, const SpawnOrder& order) {
  const std::string why = strerrordesc_np(failure.error);
  switch (failure.step) {
    case Step::kDirectory:
      return absl::StrCat("cannot enter the working directory '", order.directory, "': ", why,
                          "; it must exist on every host");
    case Step::kDescriptors:
      return absl::StrCat("cannot arrange the descriptors of '", order.argv[0], "': ", why,
                          "; look at the limit of open files");
    case Step::kProcess:
      return absl::StrCat("cannot make a process for '", order.argv[0], "': ", why,
                          "; look at the limit of processes (ulimit -u, the cgroup's pids.max)");
    case Step::kCommand:
      break;
  }
  return DescribeCommand(failure.error, order);
}

int ExecFailureCode(const ExecFailure& failure) {
  if (failure.step != Step::kCommand) return 125;
  return failure.error == ENOENT || failure.error == ENOTDIR ? 127 : 126;
}

}  // namespace hvd
