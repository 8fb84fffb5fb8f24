// SPDX-License-Identifier: Apache-2.0
#include "tests/support/elastic_daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "hvd/hvd.h"
#include "proto/hello.h"
#include "tests/support/link_frames.h"

namespace hvd {
namespace {

// Members that never come to their next word must not hold a test up for ever.
constexpr time_t kPatienceS = 60;

int member_gate = -1, member_voice = -1;  // of the process that is a member

std::string Token(uint64_t member) {
  char token[33];
  snprintf(token, sizeof(token), "%032d", static_cast<int>(member));
  return token;
}

// Where each thread of a process waits in the kernel.
std::string WaitsOf(pid_t pid) {
  std::string text;
  std::error_code gone;
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks, gone)) {
    for (const char* what : {"comm", "wchan", "syscall"}) {
      std::string line;
      std::getline(std::ifstream(task.path() / what), line);
      text += line + " ";
    }
    text += "\n";
  }
  return text;
}

}  // namespace

void MemberAwait() {
  char byte = 0;
  MUST(read(member_gate, &byte, 1) == 1);
}

void MemberTell() { MUST(write(member_voice, "t", 1) == 1); }

void MemberMust(bool fine, const char* what, int line) {
  if (fine) return;
  fprintf(stderr, "member %s, line %d: %s is not so; hvd_last_error: %s\n",
          getenv("HVD_TEST_MEMBER"), line, what, hvd_last_error());
  fflush(stderr);
  _exit(1);
}

ElasticDaemon::ElasticDaemon(bool is_elastic) : is_elastic_(is_elastic) {
  std::string pattern = std::string(P_tmpdir) + "/hvd-test-XXXXXX";
  directory_ = mkdtemp(pattern.data());
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof(address.sun_path), "%s/link", directory_.c_str());
  listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(bind(listener_, reinterpret_cast<struct sockaddr*>(&address), sizeof(address)) == 0);
  REQUIRE(listen(listener_, 16) == 0);
  const struct timeval patience = {kPatienceS, 0};
  setsockopt(listener_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
}

ElasticDaemon::~ElasticDaemon() {
  for (auto& [number, member] : members_) {
    if (member.pid != 0) Kill(number);
    if (member.fd >= 0) close(member.fd);
    close(member.gate);
    close(member.voice);
  }
  EndEpoch();
  for (const auto& [name, fd] : state_files_) close(fd);
  for (void* const each : mapped_) munmap(each, kStateContentsAt);
  close(listener_);
  unlink((directory_ + "/link").c_str());
  rmdir(directory_.c_str());
}

uint64_t ElasticDaemon::Start(int share, int (*body)()) {
  const uint64_t number = members_.size() + 1;
  fflush(nullptr);
  int gate[2], voice[2];
  REQUIRE(pipe2(gate, O_CLOEXEC) == 0);
  REQUIRE(pipe2(voice, O_CLOEXEC) == 0);
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    member_gate = gate[0];
    member_voice = voice[1];
    setenv("HVD_TEST_MEMBER", std::to_string(number).c_str(), 1);
    setenv("HVD_RANK", "0", 1);
    setenv("HVD_LINK", FormatLinkName({-1, 0, Token(number), directory_ + "/link"}).c_str(), 1);
    _exit(body());
  }
  close(gate[0]);
  close(voice[1]);
  members_[number] = {pid, -1, share, gate[1], voice[0]};
  return number;
}

void ElasticDaemon::Claim(uint64_t member) {
  Member& mine = members_.at(member);
  mine.fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  REQUIRE(mine.fd >= 0);
  const struct timeval patience = {kPatienceS, 0};
  setsockopt(mine.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  v1::ToDaemon claim;
  AwaitWord(member, &claim);
  REQUIRE(claim.has_claim());
  REQUIRE(claim.claim().token() == Token(member));
  v1::ToWorker welcome;
  welcome.mutable_welcome()->set_member(member);
  welcome.mutable_welcome()->set_elastic(is_elastic_);
  welcome.mutable_welcome()->set_share(static_cast<uint32_t>(mine.share));
  WriteFrame(mine.fd, welcome);
}

uint64_t ElasticDaemon::Bring(int share, int (*body)()) {
  const uint64_t member = Start(share, body);
  Claim(member);
  return member;
}

std::vector<uint64_t> ElasticDaemon::BringAll(const std::vector<int>& shares, int (*body)()) {
  std::vector<uint64_t> members;
  members.reserve(shares.size());
  for (const int share : shares) members.push_back(Bring(share, body));
  return members;
}

void ElasticDaemon::AwaitWord(uint64_t member, v1::ToDaemon* word, int* descriptor) {
  INFO("member " << member);
  int unwanted = -1;
  REQUIRE(ReadFrame(members_.at(member).fd, word, descriptor != nullptr ? descriptor : &unwanted));
  if (unwanted >= 0) close(unwanted);
}

v1::ToDaemon ElasticDaemon::AwaitKind(uint64_t member, v1::ToDaemon::KindCase kind) {
  v1::ToDaemon word;
  AwaitWord(member, &word);
  INFO("member " << member << " says " << word.ShortDebugString());
  REQUIRE(word.kind_case() == kind);
  return word;
}

void ElasticDaemon::AwaitJoin(uint64_t member) { AwaitKind(member, v1::ToDaemon::kJoin); }

void ElasticDaemon::AwaitLeave(uint64_t member) {
  REQUIRE(AwaitKind(member, v1::ToDaemon::kLeave).leave().epoch() == plan_.epoch);
}

void ElasticDaemon::AwaitAddress(uint64_t member) { AwaitKind(member, v1::ToDaemon::kAddress); }

void ElasticDaemon::AwaitReady(uint64_t member) { AwaitKind(member, v1::ToDaemon::kReady); }

void ElasticDaemon::AwaitInitFailed(uint64_t member) {
  AwaitKind(member, v1::ToDaemon::kInitFailed);
}

std::vector<int> ElasticDaemon::StateFiles(int host, int share) {
  std::vector<int> files;
  for (const std::string& owner :
       {std::to_string(host), std::to_string(host) + "." + std::to_string(share)}) {
    for (const char* turn : {" 0", " 1"}) {
      const auto [found, is_new] = state_files_.try_emplace(owner + turn, -1);
      if (is_new) {
        found->second = memfd_create("hvd-test-state", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        REQUIRE(fcntl(found->second, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
      }
      files.push_back(found->second);
    }
  }
  return files;
}

StateHead* ElasticDaemon::state(int host, uint64_t number) {
  const int fd = StateFiles(host, 0)[number % 2];
  struct stat found {};
  REQUIRE(fstat(fd, &found) == 0);
  if (static_cast<uint64_t>(found.st_size) < kStateContentsAt) return nullptr;
  void* const at = mmap(nullptr, kStateContentsAt, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  mapped_.push_back(at);
  return static_cast<StateHead*>(at);
}

uint64_t ElasticDaemon::NewestCommit(int host) {
  uint64_t newest = 0;
  for (const uint64_t turn : {0, 1}) {
    const StateHead* const head = state(host, turn);
    if (head != nullptr) newest = std::max(newest, CompleteState(*head).number);
  }
  return newest;
}

void ElasticDaemon::VoidBeyond(int host, uint64_t number) {
  for (const uint64_t turn : {0, 1}) {
    StateHead* const head = state(host, turn);
    if (head != nullptr) VoidStateBeyond(head, number);
  }
}

void ElasticDaemon::BeginHost(const ElasticHost& host) {
  const auto ranks = static_cast<int>(host.members.size());
  const int memory = memories_[host.id] = memfd_create("hvd-test", MFD_CLOEXEC);
  REQUIRE(ftruncate(memory, static_cast<off_t>(kHostFileBytes)) == 0);
  void* const address =
      mmap(nullptr, HostPageBytes(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  pages_[host.id] = MakeHostPage(address, {plan_.epoch, ranks, kHostFileBytes, 0});
  for (int rank = 0; plan_.hosts.size() > 1 && rank < ranks; ++rank) {
    event_fds_[host.id].push_back(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  }
}

void ElasticDaemon::EndEpoch() {
  for (const ElasticHost& host : plan_.hosts) {
    munmap(pages_[host.id], HostPageBytes(static_cast<int>(host.members.size())));
    close(memories_[host.id]);
    for (const int fd : event_fds_[host.id]) close(fd);
  }
  pages_.clear();
  memories_.clear();
  event_fds_.clear();
  plan_.hosts.clear();
}

void ElasticDaemon::Begin(const ElasticPlan& plan) {
  EndEpoch();
  plan_ = plan;
  v1::ToWorker start;
  v1::EpochStart& word = *start.mutable_epoch_start();
  word.set_epoch(plan.epoch);
  word.set_token(Token(plan.epoch));
  word.set_resume_commit(plan.resume_commit);
  word.set_root(plan.root);
  word.mutable_needy()->Add(plan.needy.begin(), plan.needy.end());
  word.set_rolls_back(plan.rolls_back);
  word.set_survivors(plan.survivors);
  word.set_state_files(is_elastic_ ? 4 : 0);
  for (const ElasticHost& host : plan.hosts) {
    v1::WorldHost* const told = word.add_hosts();
    told->set_name("host" + std::to_string(host.id));
    told->set_ranks(static_cast<uint32_t>(host.members.size()));
    BeginHost(host);
  }
  uint32_t rank = 0;
  for (const ElasticHost& host : plan.hosts) {
    for (const uint64_t number : host.members) {
      word.set_rank(rank++);
      std::vector<int> fds = {memories_[host.id]};
      fds.insert(fds.end(), event_fds_[host.id].begin(), event_fds_[host.id].end());
      if (is_elastic_) {
        const std::vector<int> files = StateFiles(host.id, members_.at(number).share);
        fds.insert(fds.end(), files.begin(), files.end());
      }
      WriteFrame(members_.at(number).fd, start, fds);
    }
  }
}

void ElasticDaemon::Meet() {
  v1::ToWorker table;
  table.mutable_table()->set_epoch(plan_.epoch);
  std::map<int, v1::ToWorker> arena_bytes;
  std::map<int, std::vector<int>> arenas;
  for (const ElasticHost& host : plan_.hosts) {
    for (const uint64_t number : host.members) {
      v1::ToDaemon word;
      int arena = -1;
      AwaitWord(number, &word, &arena);
      INFO("member " << number << " says " << word.ShortDebugString());
      REQUIRE(word.has_address());
      pages_[host.id]->taken.store((word.address().memory_bytes() + 4095) / 4096 * 4096);
      table.mutable_table()->add_addresses(word.address().address());
      arena_bytes[host.id].mutable_table()->add_arena_bytes(word.address().arena_bytes());
      if (arena >= 0) arenas[host.id].push_back(arena);
    }
  }
  for (const ElasticHost& host : plan_.hosts) {
    for (const uint64_t number : host.members) {
      v1::ToWorker mine = table;
      mine.MergeFrom(arena_bytes[host.id]);
      WriteFrame(members_.at(number).fd, mine, arenas[host.id]);
    }
    for (const int fd : arenas[host.id]) close(fd);
  }
}

void ElasticDaemon::Go() {
  v1::ToWorker go;
  go.mutable_go()->set_epoch(plan_.epoch);
  for (const ElasticHost& host : plan_.hosts) {
    for (const uint64_t number : host.members) {
      v1::ToDaemon word;
      AwaitWord(number, &word);
      REQUIRE(word.has_ready());
    }
  }
  for (const ElasticHost& host : plan_.hosts) {
    for (const uint64_t number : host.members) WriteFrame(members_.at(number).fd, go);
  }
}

void ElasticDaemon::GoTo(uint64_t member) {
  v1::ToWorker go;
  go.mutable_go()->set_epoch(plan_.epoch);
  WriteFrame(members_.at(member).fd, go);
}

void ElasticDaemon::Run(const ElasticPlan& plan) {
  for (const ElasticHost& host : plan.hosts) {
    for (const uint64_t number : host.members) AwaitJoin(number);
  }
  Begin(plan);
  Meet();
  Go();
}

void ElasticDaemon::Abort(const std::string& cause) {
  for (const ElasticHost& host : plan_.hosts) {
    const std::vector<int>& bells = event_fds_[host.id];
    AbortEpochAsDaemon(pages_[host.id], {cause.c_str(), -1},
                       bells.empty() ? nullptr : bells.data());
  }
}

void ElasticDaemon::Open(uint64_t member) { REQUIRE(write(members_.at(member).gate, "g", 1) == 1); }

void ElasticDaemon::AwaitTold(uint64_t member) {
  INFO("member " << member);
  struct pollfd told = {members_.at(member).voice, POLLIN, 0};
  REQUIRE(poll(&told, 1, kPatienceS * 1000) == 1);
  char byte = 0;
  REQUIRE(read(told.fd, &byte, 1) == 1);
}

void ElasticDaemon::SetChange(int host) { pages_.at(host)->change.store(1); }

void ElasticDaemon::Refuse(uint64_t member, const std::string& why, uint64_t epoch, bool removed) {
  v1::ToWorker word;
  word.mutable_refused()->set_message(why);
  word.mutable_refused()->set_epoch(epoch);
  word.mutable_refused()->set_removed(removed);
  WriteFrame(members_.at(member).fd, word);
}

void ElasticDaemon::Kill(uint64_t member) {
  kill(members_.at(member).pid, SIGKILL);
  (void)AwaitEnd(member);
}

int ElasticDaemon::AwaitEnd(uint64_t member) {
  Member& mine = members_.at(member);
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, mine.pid, 0));
  struct pollfd ended = {handle, POLLIN, 0};
  const bool has_ended = poll(&ended, 1, kPatienceS * 1000) == 1;
  close(handle);
  if (!has_ended) FAIL("member " << member << " does not end:\n" << WaitsOf(mine.pid));
  int status = 0;
  waitpid(mine.pid, &status, 0);
  mine.pid = 0;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void ElasticDaemon::AwaitGoodEnds(const std::vector<uint64_t>& members) {
  for (const uint64_t member : members) AwaitLeave(member);
  for (const uint64_t member : members) CHECK(AwaitEnd(member) == 0);
}

}  // namespace hvd
