#include "daemon/link_b/link_server.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/descriptor_mail.h"
#include "base/process_end.h"
#include "daemon/watch/process_state.h"

namespace hvd {
namespace {

// More than the ranks of a host that may come at once; two descriptors each.
constexpr size_t kMostUnclaimed = 256;
constexpr auto kClaimTime = std::chrono::seconds(5);
// A dying process closes its sockets before its pidfd speaks; its parent's word on how it ended
// comes right after.
constexpr auto kWordOfShim = std::chrono::milliseconds(200);

}  // namespace

LinkServer::LinkServer(LinkServerOptions options)
    : options_(std::move(options)),
      book_(options_.local_size, options_.first_rank),
      ranks_(options_.local_size),
      stalls_(options_.stall) {
  if (options_.stall.warn_s > 0) loop_.Post([this] { LookForStalls(); });
  if (options_.timeline) loop_.Post([this] { SwitchTracing(true); });
  if (options_.listener.valid()) {
    loop_.Watch(options_.listener.get(), EPOLLIN, [this](uint32_t) { OnListener(); });
  }
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "hvdd-links");
    loop_.Run();
  });
}

LinkServer::~LinkServer() {
  loop_.Quit();
  thread_.join();
}

std::string LinkServer::Name(int rank) const {
  return absl::StrCat("rank ", options_.first_rank + rank, " on ",
                      options_.hosts[options_.host_index].name);
}

// ---- from other threads ----

void LinkServer::AddDoor(int rank, Descriptor door, std::string token) {
  loop_.Post([this, rank, door = door.Release(), token = std::move(token)] {
    ranks_[rank].door.Reset(door);
    ranks_[rank].token = token;
    loop_.Watch(door, EPOLLIN, [this, rank](uint32_t) { OnDoor(rank); });
  });
}

void LinkServer::RankStarted(int rank, int pid) {
  loop_.Post([this, rank, pid] { ranks_[rank].pid = pid; });
}

// What the page says: ranks abort an epoch themselves, and those of another host are heard there
// sooner than hvdrun by hvdd. Whoever has left knows what was known then.
AbortWord LinkServer::AbortHeardBy(int rank) const {
  if (book_.left(rank)) return ranks_[rank].aborted;
  const auto found = memories_.find(book_.last_epoch(rank));
  return found == memories_.end() ? AbortWord() : found->second->aborted();
}

void LinkServer::RankEnded(int rank, std::string how, std::function<void(LinkFacts)> reply) {
  loop_.Post([this, rank, how = std::move(how), reply = std::move(reply)] {
    Rank& ended = ranks_[rank];
    // What it said at its end comes another way than the word of its end, and may be later.
    if (peers_.count(ended.peer) > 0) OnPeer(ended.peer, 0);
    LinkFacts facts;
    facts.aborted = AbortHeardBy(rank);
    const bool by_another =
        !facts.aborted.cause.empty() && facts.aborted.rank != options_.first_rank + rank;
    facts.after_abort = (book_.after_abort(rank) || by_another) && !ended.broke;
    facts.epoch = book_.last_epoch(rank);
    facts.joined = book_.joined_ever(rank);
    facts.left = book_.left(rank);
    facts.refused = book_.refused(rank);
    facts.activity = ActivityOf(rank);
    facts.counts = CountsOf(rank);
    // A wrapper may end before the process that speaks for its rank.
    const auto peer = peers_.find(ended.peer);
    facts.spoken_for =
        peer != peers_.end() && peer->second->pid() != ended.pid && !peer->second->Ended(0);
    ended.pid = -1;
    absl::string_view when = "";
    if (!facts.joined) when = " before hvd's init";
    if (facts.joined && !facts.left) when = " without hvd's shutdown";
    facts.cause = absl::StrCat(Name(rank), " ", how, when);
    if (!facts.spoken_for) Carry(book_.Gone(rank, facts.cause));
    NoteRankEnded(rank);
    reply(facts);
  });
}

void LinkServer::TableCame(v1::EpochTable table) {
  loop_.Post([this, table = std::move(table)] {
    tables_[table.epoch()] = table;
    Carry(book_.TableCame(table.epoch()));
    tables_.erase(table.epoch());
    arenas_.erase(table.epoch());  // they are under way
  });
}

void LinkServer::GoCame(uint64_t epoch) {
  loop_.Post([this, epoch] { Carry(book_.GoCame(epoch)); });
}

void LinkServer::Abort(uint64_t epoch, std::string cause) {
  loop_.Post([this, epoch, cause = std::move(cause)] { Carry(book_.Abort(epoch, cause)); });
}

void LinkServer::Stop(std::string cause) {
  loop_.Post([this, cause = std::move(cause)] {
    Carry(book_.Stop(cause));
    options_.store->Stop(cause);
  });
}

// ---- connections ----

void LinkServer::OnDoor(int rank) {
  char token[64];
  std::vector<Descriptor> fds;
  const ssize_t n = ReceiveMail(ranks_[rank].door.get(), token, sizeof(token), &fds);
  if (n < 0 && errno == EAGAIN) return;
  if (n <= 0) {
    // Every holder of the door has closed it; the way back remains.
    loop_.Forget(ranks_[rank].door.get());
    ranks_[rank].door.Reset();
    return;
  }
  if (fds.size() == 1) Adopt(std::move(fds[0]));
}

void LinkServer::OnListener() {
  Descriptor socket(
      accept4(options_.listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket.valid()) Adopt(std::move(socket));
}

void LinkServer::Adopt(Descriptor socket) {
  auto peer = std::make_unique<LinkPeer>(std::move(socket));
  if (!peer->trusted()) return TellOfStranger(*peer, "belongs to another user");
  const int fd = peer->fd();
  peers_[fd] = std::move(peer);
  loop_.Watch(fd, EPOLLIN, [this, fd](uint32_t events) { OnPeer(fd, events); });
  AwaitClaim(fd);
}

// A rank says at once who it is, so the oldest of many silent ones is none.
void LinkServer::AwaitClaim(int fd) {
  if (unclaimed_.size() >= kMostUnclaimed) {
    TurnAway(*peers_[unclaimed_.front().first], "said nothing, and many more came");
  }
  unclaimed_.emplace_back(fd, Clock::now() + kClaimTime);
  if (unclaimed_.size() == 1) LookForClaims();
}

void LinkServer::LookForClaims() {
  while (!unclaimed_.empty() && unclaimed_.front().second <= Clock::now()) {
    TurnAway(*peers_[unclaimed_.front().first], "did not say which rank it is");
  }
  loop_.Cancel(claim_timer_);
  if (unclaimed_.empty()) return;
  claim_timer_ = loop_.At(unclaimed_.front().second, [this] { LookForClaims(); });
}

void LinkServer::NoLongerUnclaimed(int fd) {
  const auto found = std::find_if(unclaimed_.begin(), unclaimed_.end(),
                                  [fd](const auto& waiting) { return waiting.first == fd; });
  if (found != unclaimed_.end()) unclaimed_.erase(found);
}

void LinkServer::OnPeer(int fd, uint32_t events) {
  LinkPeer* peer = peers_[fd].get();
  bool alive = peer->Read();
  std::string message;
  while (peer->NextMessage(&message)) {
    Handle(peer, message);
    if (peers_.count(fd) == 0) return;
  }
  if (peer->deaf()) return Close(fd, "asks hvdd again and again and reads no answer");
  if (peer->broken()) return TurnAway(*peer, kSentNoMessage);
  if ((events & EPOLLOUT) != 0 && alive) alive = peer->Flush();
  if (!alive) return Close(fd);
  WatchPeer(*peer);
}

void LinkServer::Close(int fd, const char* how) {
  const auto found = peers_.find(fd);
  if (found == peers_.end()) return;
  const std::unique_ptr<LinkPeer> peer = std::move(found->second);
  peers_.erase(found);
  loop_.Forget(fd);
  NoLongerUnclaimed(fd);
  if (peer->rank < 0 || ranks_[peer->rank].peer != fd) return;
  ranks_[peer->rank].peer = -1;
  if (!book_.in_epoch(peer->rank)) return;
  if (book_.in_live_epoch(peer->rank)) return Lost(peer->rank, *peer, how);
  // An aborted epoch may be left without a word: by a process that will try again, or by its end.
  if (!peer->Ended(0)) return Carry(book_.Abandon(peer->rank));
  Carry(book_.Gone(peer->rank, absl::StrCat(Name(peer->rank), " has left the job")));
}

void LinkServer::TurnAway(const LinkPeer& peer, const char* how) {
  if (peer.rank < 0) TellOfStranger(peer, how);
  Close(peer.fd(), how);
}

// Once a job: there may be any number of them, and they must not fill the terminal.
void LinkServer::TellOfStranger(const LinkPeer& peer, const char* how) {
  if (std::exchange(told_of_stranger_, true)) return;
  v1::Event event;
  event.mutable_notice()->set_text(
      absl::StrCat("process ", peer.pid(), " came to hvdd and is no rank of this job: it ", how,
                   "; it was turned away, and any other will be without a word"));
  options_.on_event(std::move(event));
}

void LinkServer::Lost(int rank, const LinkPeer& peer, const char* how) {
  // While it is on its way out, the kernel tells anybody how; its parent may take that away.
  std::optional<int> status = peer.end_status();
  if (!peer.Ended(0) && !StateOf(peer.pid()).exiting) return Broke(rank, how);
  if (peer.pid() != ranks_[rank].pid) {
    if (!status.has_value()) status = peer.end_status();
    return LostWorker(rank, peer, status);
  }
  // How it ended comes from the shim at once; without that word this is all there is to say.
  loop_.At(Clock::now() + kWordOfShim, [this, rank] {
    if (book_.in_live_epoch(rank)) Broke(rank, "died");
  });
}

void LinkServer::Broke(int rank, const std::string& how) {
  v1::RankBroke broke;
  broke.set_message(absl::StrCat(Name(rank), " ", how));
  TellBroke(rank, std::move(broke));
}

// The process that spoke for the rank is none that the shim started: nobody else says how it ended.
void LinkServer::LostWorker(int rank, const LinkPeer& peer, std::optional<int> status) {
  v1::RankBroke broke;
  v1::WorkerEnd& worker = *broke.mutable_worker();
  worker.set_pid(peer.pid());
  worker.set_known(status.has_value());
  if (status.has_value() && WIFSIGNALED(*status)) worker.set_signal(WTERMSIG(*status));
  if (status.has_value() && WIFSIGNALED(*status)) worker.set_core_dumped(WCOREDUMP(*status));
  if (status.has_value() && WIFEXITED(*status)) worker.set_exit_code(WEXITSTATUS(*status));
  worker.set_wrapper(ProcessName(ranks_[rank].pid));
  broke.set_message(absl::StrCat(Name(rank), ": its worker (pid ", peer.pid(), ") ",
                                 status.has_value() ? DescribeEnd(*status) : "died"));
  TellBroke(rank, std::move(broke));
}

void LinkServer::TellBroke(int rank, v1::RankBroke broke) {
  ranks_[rank].broke = true;
  ranks_[rank].activity = ActivityOf(rank);
  Carry(book_.Gone(rank, broke.message()));
  broke.set_rank(options_.first_rank + rank);
  v1::Event event;
  *event.mutable_rank_broke() = std::move(broke);
  options_.on_event(std::move(event));
}

}  // namespace hvd
