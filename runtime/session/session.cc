#include "runtime/session/session.h"

#include <unistd.h>

namespace hvd {
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

}  // namespace

// Waits for a message of the wanted kind; a refusal is an error with its text.
absl::StatusOr<ToWorkerMessage> Session::Await(ToWorkerKind wanted, const HostPage* page,
                                               std::vector<int>* fds) {
  auto frame = socket_.Receive([page] { return Ended(page); });
  if (!frame.ok()) return frame.status();
  ToWorkerMessage message;
  const bool parsed = DecodeToWorker(frame->bytes, &message);
  if (parsed && message.kind == wanted && fds != nullptr) {
    *fds = std::move(frame->descriptors);
    return message;
  }
  for (const int fd : frame->descriptors) close(fd);
  if (parsed && message.kind == wanted) return message;
  if (parsed && message.kind == ToWorkerKind::kRefused) {
    return absl::FailedPreconditionError(message.text);
  }
  return absl::InternalError("hvdd sent something else than was asked for");
}

absl::StatusOr<std::unique_ptr<Session>> Session::Open(const LinkName& link) {
  const absl::StatusOr<int> fd = LinkSocket::Connect(link);
  if (!fd.ok()) return fd.status();
  std::unique_ptr<Session> session(new Session(*fd));
  const absl::Status sent = session->socket_.Send(EncodeClaim(link.token));
  if (!sent.ok()) return sent;
  auto welcome = session->Await(ToWorkerKind::kWelcome, nullptr);
  if (!welcome.ok()) return welcome.status();
  session->topology_ = Topology(std::move(welcome->hosts));
  session->rank_ = welcome->rank;
  session->job_ = welcome->job;
  if (session->rank_ < 0 || session->rank_ >= session->topology_.size()) {
    return absl::InternalError("hvdd gave this process a rank outside the job");
  }
  return session;
}

absl::StatusOr<EpochGrant> Session::Join(uint64_t after_epoch, size_t memory_bytes) {
  const absl::Status sent = socket_.Send(EncodeJoin(after_epoch, memory_bytes));
  if (!sent.ok()) return sent;
  std::vector<int> fds;
  auto start = Await(ToWorkerKind::kEpochStart, nullptr, &fds);
  if (!start.ok()) return start.status();
  auto memory = HostMemory::Map(std::move(fds), memory_bytes);
  if (!memory.ok()) return memory.status();
  EpochGrant grant;
  grant.epoch = start->epoch;
  grant.token = start->token;
  grant.memory = std::move(*memory);
  return grant;
}

absl::StatusOr<Meeting> Session::Exchange(const EpochGrant& grant, const std::string& address,
                                          const ArenaFile& arena) {
  const absl::Status sent =
      socket_.Send(EncodeAddress(grant.epoch, address, arena.bytes), arena.fd);
  if (!sent.ok()) return sent;
  std::vector<int> fds;
  auto table = Await(ToWorkerKind::kTable, grant.memory->page(), &fds);
  if (!table.ok()) return table.status();
  table->arena_bytes.resize(topology_.place(rank_).local_size);
  Meeting meeting;
  meeting.addresses = std::move(table->addresses);
  meeting.arenas = PairArenas(table->arena_bytes, fds);
  if (static_cast<int>(meeting.addresses.size()) == topology_.size()) return meeting;
  for (const ArenaFile& each : meeting.arenas) {
    if (each.fd >= 0) close(each.fd);
  }
  return absl::InternalError("the table of addresses does not have an entry a rank");
}

absl::Status Session::Barrier(const EpochGrant& grant) {
  const absl::Status sent = socket_.Send(EncodeReady(grant.epoch));
  return sent.ok() ? Await(ToWorkerKind::kGo, grant.memory->page()).status() : sent;
}

absl::Status Session::AskTimeline(const std::string& path) {
  const absl::Status sent = socket_.Send(EncodeAskTimeline(path));
  if (!sent.ok()) return sent;
  const auto answer = Await(ToWorkerKind::kTimelineAnswer, nullptr);
  if (!answer.ok()) return answer.status();
  return answer->text.empty() ? absl::OkStatus() : absl::InvalidArgumentError(answer->text);
}

absl::Status Session::TellInitFailed(const std::string& why) {
  return socket_.Send(EncodeInitFailed(why));
}

absl::Status Session::Leave(uint64_t epoch) { return socket_.Send(EncodeLeave(epoch)); }

}  // namespace hvd
