// SPDX-License-Identifier: Apache-2.0
// A daemon of link B for an elastic job, driven word by word by the test: its members are processes
// that the test has forked, on one or several hosts. It has no thread, so what happens first is
// what the test does first.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hvd/v1/link_b.pb.h"
#include "proto/page/host_page.h"
#include "proto/page/state_box.h"

namespace hvd {

struct ElasticHost {
  int id = 0;
  std::vector<uint64_t> members;
};

struct ElasticPlan {
  uint64_t epoch = 1;
  std::vector<ElasticHost> hosts;
  uint64_t resume_commit = 0;
  int root = 0;
  std::vector<uint32_t> needy = {};
  bool rolls_back = false;
  uint32_t survivors = 0;
};

class ElasticDaemon {
 public:
  // Without `is_elastic`, the job is not elastic: the members are told so, and get no files.
  explicit ElasticDaemon(bool is_elastic = true);
  ~ElasticDaemon();  // kills the members that still live
  ElasticDaemon(const ElasticDaemon&) = delete;
  ElasticDaemon& operator=(const ElasticDaemon&) = delete;

  // Starts a member in a process of its own, which ends with what `body` returns; takes its claim
  // when it comes to that (Claim). Its share of the host is `share`.
  uint64_t Start(int share, int (*body)());
  void Claim(uint64_t member);
  // Both, one member after the other.
  uint64_t Bring(int share, int (*body)());
  std::vector<uint64_t> BringAll(const std::vector<int>& shares, int (*body)());
  // The next word of a member must be this one: the test fails otherwise, and at its end.
  void AwaitJoin(uint64_t member);
  void AwaitLeave(uint64_t member);
  void AwaitAddress(uint64_t member);
  void AwaitReady(uint64_t member);
  void AwaitInitFailed(uint64_t member);
  // Begins an epoch, whose members have all joined; the pieces of it, or all.
  void Begin(const ElasticPlan& plan);
  void Meet();
  void Go();
  // Tells one member alone.
  void GoTo(uint64_t member);
  void Run(const ElasticPlan& plan);
  // As hvdd does: the page's word, which all members of that host see.
  void Abort(const std::string& cause);
  void SetChange(int host);
  void Refuse(uint64_t member, const std::string& why, uint64_t epoch, bool removed);
  // Lets it go on from MemberAwait; waits until it has come to MemberTell.
  void Open(uint64_t member);
  void AwaitTold(uint64_t member);
  void Kill(uint64_t member);
  // The code that it has ended with; 128 + the signal.
  int AwaitEnd(uint64_t member);
  // Each leaves the epoch, and then ends with code 0.
  void AwaitGoodEnds(const std::vector<uint64_t>& members);

  pid_t pid(uint64_t member) const { return members_.at(member).pid; }
  HostPage* page(int host) { return pages_.at(host); }
  // A host's file for commits with an even or odd number, as far as it goes.
  StateHead* state(int host, uint64_t number);
  uint64_t NewestCommit(int host);
  // Does what hvdd does with commits beyond `number`, from which the next epoch goes on.
  void VoidBeyond(int host, uint64_t number);

 private:
  struct Member {
    pid_t pid = 0;
    int fd = -1;
    int share = 0;
    int gate = -1, voice = -1;
  };
  void BeginHost(const ElasticHost& host);
  void EndEpoch();
  std::vector<int> StateFiles(int host, int share);
  void AwaitWord(uint64_t member, v1::ToDaemon* word, int* descriptor = nullptr);
  v1::ToDaemon AwaitKind(uint64_t member, v1::ToDaemon::KindCase kind);

  const bool is_elastic_;
  std::string directory_;
  int listener_ = -1;
  std::map<uint64_t, Member> members_;
  ElasticPlan plan_;
  std::map<int, HostPage*> pages_;
  std::map<int, int> memories_;
  std::map<int, std::vector<int>> event_fds_;
  std::map<std::string, int> state_files_;
  std::vector<void*> mapped_;
};

// In a member: waits until the test opens its gate; tells the test that it has come so far.
void MemberAwait();
void MemberTell();
// In a member: what the test looks for. A member that fails says where, and ends with 1.
void MemberMust(bool fine, const char* what, int line);
#define MUST(what) ::hvd::MemberMust((what), #what, __LINE__)

}  // namespace hvd
