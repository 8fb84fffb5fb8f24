// SPDX-License-Identifier: Apache-2.0
#include "daemon/shim/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <set>

namespace hvd::daemon {
namespace {

std::string ReadWhole(const std::string& path) {
  const Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[4096];
  ssize_t n;
  while (fd.valid() && (n = read(fd.get(), buffer, sizeof(buffer))) > 0) text.append(buffer, n);
  return text;
}

std::string ProcPath(int pid, const char* name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

bool HasMark(int pid, const std::string& mark) {
  // Entries end with a nul; the first one has none before it.
  const std::string environment = '\0' + ReadWhole(ProcPath(pid, "environ"));
  return environment.find('\0' + mark + '\0') != std::string::npos;
}

// The entry that begins with `name` ("HVD_MEMBER_MARK="); empty: none.
std::string MarkOf(int pid, const std::string& name) {
  const std::string environment = '\0' + ReadWhole(ProcPath(pid, "environ"));
  const size_t at = environment.find('\0' + name);
  if (at == std::string::npos) return "";
  return environment.c_str() + at + 1;
}

// Returns the processes in the containment of `root`: descendants and the marked, with the marked's
// own descendants.
std::vector<ProcessFact> Members(int root, const std::string& mark) {
  const std::vector<ProcessFact> all = ReadProcesses();
  std::map<int, ProcessFact> members;
  for (const ProcessFact& fact : Descendants(all, root)) members[fact.pid] = fact;
  if (!mark.empty()) {
    for (const ProcessFact& fact : all) {
      if (fact.pid == root || fact.pid == getpid() || members.count(fact.pid) != 0) continue;
      if (!HasMark(fact.pid, mark)) continue;
      members[fact.pid] = fact;
      for (const ProcessFact& below : Descendants(all, fact.pid)) members[below.pid] = below;
    }
  }
  members.erase(getpid());
  std::vector<ProcessFact> living;
  for (const auto& [pid, fact] : members) {
    if (fact.state != 'Z' && fact.state != 'X') living.push_back(fact);
  }
  return living;
}

// Stops what `find` shows until it shows nothing new, then kills it: a stopped process cannot fork,
// so the tree stops growing after a few rounds.
int FreezeAndKill(const std::function<std::vector<ProcessFact>()>& find) {
  std::map<int, Descriptor> frozen;
  for (int round = 0; round < 100; ++round) {
    bool grew = false;
    for (const ProcessFact& fact : find()) {
      if (frozen.count(fact.pid) != 0) continue;
      Descriptor pidfd = OpenProcess(fact);
      if (!pidfd.valid() || !SendSignal(pidfd.get(), SIGSTOP)) continue;
      frozen[fact.pid] = std::move(pidfd);
      grew = true;
    }
    if (!grew) break;
  }
  for (const auto& [pid, pidfd] : frozen) SendSignal(pidfd.get(), SIGKILL);
  return static_cast<int>(frozen.size());
}

}  // namespace

bool ParseStat(std::string_view text, ProcessFact* fact) {
  // "PID (NAME) STATE PPID PGRP …", born is the 22nd; NAME may hold anything, also ") ".
  const size_t close = text.rfind(')');
  if (close == std::string_view::npos) return false;
  const std::string rest(text.substr(close + 1));
  if (sscanf(rest.c_str(),
             " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
             &fact->state, &fact->parent, &fact->group, &fact->born) != 4) {
    return false;
  }
  return std::from_chars(text.data(), text.data() + close, fact->pid).ec == std::errc();
}

std::vector<ProcessFact> ReadProcesses() {
  std::vector<ProcessFact> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir("/proc"), closedir);
  if (dir == nullptr) return all;
  while (const dirent* entry = readdir(dir.get())) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    ProcessFact fact;
    if (ParseStat(ReadWhole(std::string("/proc/") + entry->d_name + "/stat"), &fact)) {
      all.push_back(fact);
    }
  }
  return all;
}

std::vector<ProcessFact> Descendants(absl::Span<const ProcessFact> all, int root) {
  std::multimap<int, const ProcessFact*> children;
  for (const ProcessFact& fact : all) children.emplace(fact.parent, &fact);
  std::vector<ProcessFact> found;
  std::vector<int> open{root};
  std::set<int> seen{root};  // a snapshot read while pids are reused may hold a circle
  while (!open.empty()) {
    const int parent = open.back();
    open.pop_back();
    const auto [first, last] = children.equal_range(parent);
    for (auto child = first; child != last; ++child) {
      if (!seen.insert(child->second->pid).second) continue;
      found.push_back(*child->second);
      open.push_back(child->second->pid);
    }
  }
  return found;
}

std::vector<ProcessFact> Leftovers(absl::Span<const ProcessFact> all, int root,
                                   const std::set<int>& living) {
  std::set<int> spared = living;
  for (const int rank : living) {
    for (const ProcessFact& below : Descendants(all, rank)) spared.insert(below.pid);
  }
  std::vector<ProcessFact> left = Descendants(all, root);
  left.erase(std::remove_if(left.begin(), left.end(),
                            [&](const ProcessFact& fact) {
                              return spared.count(fact.pid) != 0 || living.count(fact.group) != 0;
                            }),
             left.end());
  return left;
}

Descriptor OpenProcess(const ProcessFact& fact) {
  Descriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, fact.pid, 0)));
  ProcessFact now;
  const bool same = pidfd.valid() && ParseStat(ReadWhole(ProcPath(fact.pid, "stat")), &now) &&
                    now.born == fact.born;
  if (!same) pidfd.Reset();
  return pidfd;
}

bool SendSignal(int pidfd, int signal) {
  return syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) == 0;
}

int FreezeAndKill(int root, const std::string& mark) {
  return FreezeAndKill([&] { return Members(root, mark); });
}

std::vector<ProcessFact> LeftBy(const DeadMember& dead, absl::Span<const ProcessFact> all, int root,
                                const std::set<int>& living,
                                const std::function<std::string(int)>& mark_of) {
  std::vector<ProcessFact> nobodys;
  std::vector<int> its;
  for (const ProcessFact& fact : Leftovers(all, root, living)) {
    if (fact.state == 'Z' || fact.state == 'X') continue;
    const std::string mark = mark_of(fact.pid);
    if (!mark.empty() && mark != dead.mark) continue;
    nobodys.push_back(fact);
    if (mark == dead.mark || fact.group == dead.group) its.push_back(fact.pid);
  }
  std::set<int> found(its.begin(), its.end());
  for (const int pid : its) {
    for (const ProcessFact& below : Descendants(nobodys, pid)) found.insert(below.pid);
  }
  nobodys.erase(std::remove_if(nobodys.begin(), nobodys.end(),
                               [&](const ProcessFact& fact) { return found.count(fact.pid) == 0; }),
                nobodys.end());
  return nobodys;
}

int KillLeftBy(const DeadMember& dead, int root, const std::set<int>& living) {
  const std::string name = dead.mark.substr(0, dead.mark.find('=') + 1);
  return FreezeAndKill([&] {
    return LeftBy(dead, ReadProcesses(), root, living,
                  [&name](int pid) { return MarkOf(pid, name); });
  });
}

int CountLiving(int root, const std::string& mark) {
  return static_cast<int>(Members(root, mark).size());
}

}  // namespace hvd::daemon
