// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/session.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvd::rt {
namespace {

absl::Status Ended(const HostPage* page) {
  if (page != nullptr && page->aborted.load(std::memory_order_acquire) != 0) {
    return absl::AbortedError(CauseOf(*page).text);
  }
  return absl::OkStatus();
}

// Descriptors come in order for the ranks that have an arena. Where this process may open no more
// files, the last are missing: those ranks then have bytes and no descriptor, and cannot be mapped.
std::vector<ArenaFile> PairArenas(const std::vector<uint64_t>& bytes, const std::vector<int>& fds) {
  std::vector<ArenaFile> arenas;
  size_t next = 0;
  for (const uint64_t each : bytes) {
    const bool came = each > 0 && next < fds.size();
    arenas.push_back({came ? fds[next++] : -1, each});
  }
  for (; next < fds.size(); ++next) close(fds[next]);
  return arenas;
}

// They are the last of what came. False: there are fewer; all are closed.
bool SplitStateFiles(int count, std::vector<int>* fds, std::vector<Descriptor>* files) {
  const bool all = count >= 0 && fds->size() > static_cast<size_t>(count);
  for (size_t i = all ? fds->size() - static_cast<size_t>(count) : 0; i < fds->size(); ++i) {
    files->emplace_back((*fds)[i]);
  }
  fds->resize(fds->size() - files->size());
  if (!all) files->clear();
  return all;
}

}  // namespace

absl::Status Session::LeaveUnbegun() { return begun_ == 0 ? absl::OkStatus() : Leave(begun_); }

absl::Status Session::AwaitEnd(const EpochGrant& grant,
                               std::chrono::steady_clock::time_point until) {
  const HostPage* const page = grant.memory->page();
  const auto message = AwaitUnless(
      [page, until]() -> absl::Status {
        if (absl::Status ended = Ended(page); !ended.ok()) return ended;
        if (std::chrono::steady_clock::now() < until) return absl::OkStatus();
        return absl::DeadlineExceededError("the epoch goes on");
      },
      ToWorkerKind::kNone, nullptr);
  over_ = grant.epoch;
  return may_follow_ ? absl::AbortedError(message.status().message()) : message.status();
}

bool Session::Stale(const ToWorkerMessage& message) const {
  const bool of_epoch = message.kind == ToWorkerKind::kRefused ||
                        message.kind == ToWorkerKind::kTable || message.kind == ToWorkerKind::kGo;
  return of_epoch && message.epoch != 0 && message.epoch <= over_;
}

absl::StatusOr<ToWorkerMessage> Session::Await(ToWorkerKind wanted, const HostPage* page,
                                               std::vector<int>* fds) {
  return AwaitUnless([page] { return Ended(page); }, wanted, fds);
}

// An epoch that is over is followed by another. A refusal without one, or because this member is
// removed, is for good.
absl::Status Session::TakeRefusal(const ToWorkerMessage& message) {
  refused_ = true;
  over_ = std::max(over_, message.epoch);
  may_follow_ = message.epoch != 0 && !message.is_removed;
  return message.is_removed ? absl::CancelledError(message.text)
                            : absl::FailedPreconditionError(message.text);
}

// Waits for a message of the wanted kind; a refusal is an error with its text.
absl::StatusOr<ToWorkerMessage> Session::AwaitUnless(absl::FunctionRef<absl::Status()> broken,
                                                     ToWorkerKind wanted, std::vector<int>* fds) {
  for (;;) {
    auto frame = socket_.Receive(broken);
    if (!frame.ok()) {
      refused_ = may_follow_ = absl::IsAborted(frame.status());
      return frame.status();
    }
    ToWorkerMessage message;
    const bool parsed = DecodeToWorker(frame->bytes, &message);
    const bool stale = parsed && Stale(message);
    if (parsed && !stale && message.kind == wanted && fds != nullptr) {
      *fds = std::move(frame->descriptors);
      return message;
    }
    for (const int fd : frame->descriptors) close(fd);
    if (stale) continue;
    if (parsed && message.kind == wanted) return message;
    if (parsed && message.kind == ToWorkerKind::kRefused) {
      return TakeRefusal(message);
    }
    return absl::InternalError("hvdd sent something else than was asked for");
  }
}

absl::StatusOr<ToWorkerMessage> Session::AwaitIn(const EpochGrant& grant, ToWorkerKind wanted,
                                                 std::vector<int>* fds) {
  auto message = Await(wanted, grant.memory->page(), fds);
  if (!message.ok()) over_ = grant.epoch;
  return message;
}

absl::StatusOr<std::unique_ptr<Session>> Session::Open(const LinkName& link) {
  const absl::StatusOr<int> fd = LinkSocket::Connect(link);
  if (!fd.ok()) return fd.status();
  std::unique_ptr<Session> session(new Session(*fd));
  const absl::Status sent = session->socket_.Send(EncodeClaim(link.token));
  if (!sent.ok()) return sent;
  auto welcome = session->Await(ToWorkerKind::kWelcome, nullptr);
  if (!welcome.ok()) return welcome.status();
  session->member_ = welcome->member;
  session->job_ = welcome->job;
  session->is_elastic_ = welcome->is_elastic;
  session->share_ = welcome->share;
  return session;
}

absl::StatusOr<EpochGrant> Session::Join(const MemoryNeed& need) {
  refused_ = may_follow_ = false;
  const absl::Status sent = socket_.Send(EncodeJoin());
  return sent.ok() ? TakeStart(need) : sent;
}

absl::StatusOr<EpochGrant> Session::TakeStart(const MemoryNeed& need) {
  std::vector<int> fds;
  auto start = Await(ToWorkerKind::kEpochStart, nullptr, &fds);
  if (!start.ok()) return start.status();
  EpochGrant grant;
  grant.epoch = begun_ = start->epoch;
  grant.state = std::move(start->state);
  if (!SplitStateFiles(start->state_files, &fds, &grant.state_files)) {
    return absl::ResourceExhaustedError(
        "hvdd's files for commits have not come: this process may open too few files; raise that "
        "limit (ulimit -n)");
  }
  grant.token = std::move(start->token);
  if (absl::Status numbered = Topology::CheckNumbers(start->hosts); !numbered.ok()) {
    for (const int fd : fds) close(fd);
    return absl::InternalError(absl::StrCat("hvdd tells of hosts: ", numbered.message()));
  }
  grant.topology = Topology(std::move(start->hosts));
  grant.rank = start->rank;
  if (grant.rank < 0 || grant.rank >= grant.topology.size()) {
    for (const int fd : fds) close(fd);
    return absl::InternalError("hvdd gave this process a rank outside the job");
  }
  grant.memory_bytes = need(grant.topology, grant.topology.place(grant.rank).host);
  auto memory = HostMemory::Map(std::move(fds), grant.memory_bytes);
  if (!memory.ok()) return memory.status();
  grant.memory = std::move(*memory);
  return grant;
}

// One refusal is on its way in any case: it answers this, or others have ended the epoch meanwhile.
absl::Status Session::Withdraw(const EpochGrant& grant) {
  const absl::Status sent = socket_.Send(EncodeWithdraw(grant.epoch));
  if (!sent.ok()) return sent;
  const absl::Status answer = Await(ToWorkerKind::kNone, nullptr).status();
  return refused_ ? absl::OkStatus() : answer;
}

absl::StatusOr<Meeting> Session::Exchange(const EpochGrant& grant, const std::string& address,
                                          const ArenaFile& arena) {
  const absl::Status sent = socket_.Send(
      EncodeAddress({grant.epoch, address, arena.bytes, grant.memory_bytes}), arena.fd);
  if (!sent.ok()) return sent;
  std::vector<int> fds;
  auto table = AwaitIn(grant, ToWorkerKind::kTable, &fds);
  if (!table.ok()) return table.status();
  table->arena_bytes.resize(grant.topology.place(grant.rank).local_size);
  Meeting meeting;
  meeting.addresses = std::move(table->addresses);
  meeting.arenas = PairArenas(table->arena_bytes, fds);
  if (static_cast<int>(meeting.addresses.size()) == grant.topology.size()) return meeting;
  for (const ArenaFile& each : meeting.arenas) {
    if (each.fd >= 0) close(each.fd);
  }
  return absl::InternalError("the table of addresses does not have an entry a rank");
}

absl::Status Session::Barrier(const EpochGrant& grant) {
  const absl::Status sent = socket_.Send(EncodeReady(grant.epoch));
  return sent.ok() ? AwaitIn(grant, ToWorkerKind::kGo).status() : sent;
}

absl::Status Session::AskTimeline(const std::string& path) {
  const absl::Status sent = socket_.Send(EncodeAskTimeline(path));
  if (!sent.ok()) return sent;
  const auto answer = Await(ToWorkerKind::kTimelineAnswer, nullptr);
  if (!answer.ok()) return answer.status();
  return answer->text.empty() ? absl::OkStatus() : absl::InvalidArgumentError(answer->text);
}

absl::Status Session::AskGrace(uint64_t milliseconds) {
  return socket_.Send(EncodeAskGrace(milliseconds));
}

absl::Status Session::TellInitFailed(const std::string& why) {
  return socket_.Send(EncodeInitFailed(why));
}

absl::Status Session::Leave(uint64_t epoch) {
  over_ = epoch;
  begun_ = 0;
  return socket_.Send(EncodeLeave(epoch));
}

}  // namespace hvd::rt
