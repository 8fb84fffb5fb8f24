// SPDX-License-Identifier: Apache-2.0
#include "proto/host_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace hvd {
namespace {

constexpr size_t kMostOfWord = 64;  // the hello is one short line

std::string FirstWord(const char* path) {
  std::string word;
  std::ifstream(path) >> word;
  return word.substr(0, kMostOfWord);
}

}  // namespace

std::string HostIdentity() {
  const std::string boot = FirstWord("/proc/sys/kernel/random/boot_id");
  if (boot.empty()) return "";
  char name[kMostOfWord + 1] = {};
  gethostname(name, kMostOfWord);
  std::string identity = absl::StrCat(boot, ".", FirstWord("/etc/machine-id"), ".", name);
  for (const char* kind : {"pid", "net", "uts"}) {
    struct stat space;
    if (stat(absl::StrCat("/proc/self/ns/", kind).c_str(), &space) != 0) return "";
    absl::StrAppend(&identity, ".", space.st_ino);
  }
  std::replace_if(
      identity.begin(), identity.end(),
      [](char byte) {
        return !absl::ascii_isalnum(static_cast<unsigned char>(byte)) && byte != '.' && byte != '-';
      },
      '_');
  return identity;
}

}  // namespace hvd
