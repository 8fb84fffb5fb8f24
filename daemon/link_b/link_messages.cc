// The part of LinkServer that hears what workers say: who may speak for a rank, and where each
// message goes.
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/link_b/link_server.h"
#include "proto/hello.h"

namespace hvd {
namespace {

// Compares without telling by its time how much was right.
bool SameSecret(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned>(a[i]) ^ static_cast<unsigned>(b[i]);
  }
  return difference == 0;
}

std::string OtherProtocol(uint32_t protocol, const std::string& version) {
  return absl::StrCat("libhvd ", version, " speaks protocol ", protocol,
                      " to its daemon, hvdd " HVD_VERSION " speaks ", kLinkBProtocol,
                      "; install the same version of both");
}

constexpr const char* kWrongToken = "HVD_LINK does not belong to this job (wrong token)";

}  // namespace

void LinkServer::Handle(LinkPeer* peer, const std::string& bytes) {
  v1::ToDaemon message;
  const bool parsed = message.ParseFromString(bytes);
  if (!parsed || (message.has_claim() || message.has_store_claim()) != (peer->rank < 0)) {
    return TurnAway(*peer, kSentNoMessage);
  }
  switch (message.kind_case()) {
    case v1::ToDaemon::kClaim:
      return Claim(peer, message.claim().token(), message.claim().protocol(),
                   message.claim().version());
    case v1::ToDaemon::kStoreClaim:
      return ClaimStore(peer, message.store_claim());
    case v1::ToDaemon::kJoin:
      return Carry(
          book_.Join(peer->rank, message.join().after_epoch(), message.join().memory_bytes()));
    case v1::ToDaemon::kAddress:
      return TakeAddress(peer, message.address());
    case v1::ToDaemon::kReady:
      return Carry(book_.Ready(peer->rank, message.ready().epoch()));
    case v1::ToDaemon::kLeave:
      ranks_[peer->rank].activity = ActivityOf(peer->rank);
      return Carry(book_.Leave(peer->rank, message.leave().epoch()));
    case v1::ToDaemon::kInitFailed:
      return NoteInitFailed(peer->rank, message.init_failed().message());
    case v1::ToDaemon::kAskTimeline: {
      v1::Event event;
      event.mutable_timeline_asked()->set_rank(options_.first_rank + peer->rank);
      event.mutable_timeline_asked()->set_path(message.ask_timeline().path());
      return options_.on_event(std::move(event));
    }
    case v1::ToDaemon::KIND_NOT_SET:
      return TurnAway(*peer, kSentNoMessage);
  }
}

// Unless others have ended its epoch, which is no fault of its own. Those who have met it in an
// epoch wait for it.
void LinkServer::NoteInitFailed(int rank, const std::string& why) {
  if (book_.after_abort(rank) || !AbortHeardBy(rank).cause.empty()) return;
  v1::Event event;
  v1::RankInitFailed& failed = *event.mutable_rank_init_failed();
  failed.set_rank(options_.first_rank + rank);
  failed.set_message(why);
  failed.set_joined(book_.in_live_epoch(rank));
  if (failed.joined()) {
    ranks_[rank].broke = true;
    ranks_[rank].activity = ActivityOf(rank);
    Carry(book_.Gone(rank, absl::StrCat("hvd_init of ", Name(rank), " failed: ", why)));
  }
  options_.on_event(std::move(event));
}

void LinkServer::TakeAddress(LinkPeer* peer, const v1::Address& address) {
  const uint64_t epoch = address.epoch();
  const uint64_t bytes = address.arena_bytes();
  std::vector<Descriptor> files = peer->TakeDescriptors();
  if (files.size() != (bytes > 0 ? 1 : 0)) {
    return Refuse(peer, absl::StrCat(Name(peer->rank), " says ", bytes,
                                     " bytes of arena and sends ", files.size(), " descriptors"));
  }
  if (bytes > 0) {
    const absl::Status fine = ArenaBox::Check(files[0], bytes);
    if (!fine.ok()) {
      return Refuse(peer, absl::StrCat(Name(peer->rank), " is refused: ", fine.message()));
    }
  }
  const EpochActions actions = book_.Address(peer->rank, epoch, address.address());
  if (bytes > 0 && book_.addressed(peer->rank, epoch)) {
    std::shared_ptr<ArenaBox>& box = arenas_[epoch];
    if (box == nullptr) box = std::make_shared<ArenaBox>(options_.local_size);
    box->Put(peer->rank, std::move(files[0]), bytes);
  }
  Carry(actions);
}

int LinkServer::FindToken(const std::string& token) const {
  int found = -1;
  for (int rank = 0; rank < options_.local_size; ++rank) {
    if (!token.empty() && SameSecret(ranks_[rank].token, token)) found = rank;
  }
  return found;
}

void LinkServer::Claim(LinkPeer* peer, const std::string& token, uint32_t protocol,
                       const std::string& version) {
  if (protocol != kLinkBProtocol) return Refuse(peer, OtherProtocol(protocol, version));
  const int rank = FindToken(token);
  if (rank < 0) {
    TellOfStranger(*peer, "has a wrong token in its HVD_LINK");
    return Refuse(peer, kWrongToken);
  }
  // Its former link may have closed in the same moment, unheard as yet.
  if (peers_.count(ranks_[rank].peer) != 0) OnPeer(ranks_[rank].peer, 0);
  const auto former = peers_.find(ranks_[rank].peer);
  if (former != peers_.end()) {
    if (!former->second->Ended(0)) {
      return Refuse(peer,
                    absl::StrCat(Name(rank), " is already taken by process ", former->second->pid(),
                                 ", which is still running; a rank is one process"));
    }
    Close(former->first);
  }
  NoLongerUnclaimed(peer->fd());
  peer->rank = rank;
  ranks_[rank].peer = peer->fd();
  book_.Back(rank);
  Welcome(peer);
}

// It is none of the rank's own: the rank stays who it is, whether it has been claimed or not.
void LinkServer::ClaimStore(LinkPeer* peer, const v1::StoreClaim& claim) {
  if (claim.protocol() != kLinkBProtocol) {
    return RefuseStore(peer, OtherProtocol(claim.protocol(), claim.version()));
  }
  const int rank = FindToken(claim.token());
  if (rank < 0) {
    TellOfStranger(*peer, "has a wrong token in its HVD_LINK");
    return RefuseStore(peer, kWrongToken);
  }
  const int fd = peer->fd();
  loop_.Forget(fd);
  NoLongerUnclaimed(fd);
  std::string rest = peer->TakeRest();
  options_.store->Adopt(rank, peer->TakeSocket(), std::move(rest));
  peers_.erase(fd);
}

void LinkServer::RefuseStore(LinkPeer* peer, const std::string& text) {
  StoreAnswer answer;
  answer.outcome = StoreOutcome::kRefused;
  answer.text = text;
  peer->Send(EncodeStoreAnswer(answer).Whole(), {}, nullptr);
  peer->Flush();
  Close(peer->fd());
}

void LinkServer::Welcome(LinkPeer* peer) {
  v1::ToWorker message;
  v1::Welcome& welcome = *message.mutable_welcome();
  welcome.set_rank(options_.first_rank + peer->rank);
  welcome.set_job(options_.job);
  for (const HostShape& host : options_.hosts) {
    v1::WorldHost& shape = *welcome.add_hosts();
    shape.set_name(host.name);
    shape.set_ranks(host.ranks);
  }
  SendTo(peer->rank, message.SerializeAsString());
}

void LinkServer::Refuse(LinkPeer* peer, const std::string& text) {
  v1::ToWorker message;
  message.mutable_refused()->set_message(text);
  peer->Send(message.SerializeAsString(), {}, nullptr);
  peer->Flush();
  Close(peer->fd());
}

}  // namespace hvd
