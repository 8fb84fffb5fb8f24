// SPDX-License-Identifier: Apache-2.0
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

constexpr const char* kWrongClaim = "has a wrong token in its HVD_LINK";
constexpr const char* kWrongToken = "HVD_LINK does not belong to this job (wrong token)";

}  // namespace

void LinkServer::OnMessage(LinkPeer* peer, const std::string& bytes) {
  v1::ToDaemon message;
  const bool parsed = message.ParseFromString(bytes);
  if (!parsed || (message.has_claim() || message.has_store_claim()) != (peer->slot < 0)) {
    return connections_.TurnAway(*peer, kSentNoMessage);
  }
  Handle(peer, message);
}

void LinkServer::Handle(LinkPeer* peer, const v1::ToDaemon& message) {
  switch (message.kind_case()) {
    case v1::ToDaemon::kClaim:
      return Claim(peer, message.claim());
    case v1::ToDaemon::kStoreClaim:
      return ClaimStore(peer, message.store_claim());
    case v1::ToDaemon::kJoin:
      return epochs_.Join(peer->slot);
    case v1::ToDaemon::kWithdraw:
      return epochs_.Withdraw(peer->slot, message.withdraw().epoch());
    case v1::ToDaemon::kAddress:
      return TakeAddress(peer, message.address());
    case v1::ToDaemon::kReady:
      return epochs_.Ready(peer->slot, message.ready().epoch());
    case v1::ToDaemon::kLeave:
      return epochs_.Leave(peer->slot, message.leave().epoch());
    case v1::ToDaemon::kInitFailed:
      return NoteInitFailed(peer->slot, message.init_failed().message());
    case v1::ToDaemon::kAskTimeline:
      return AskTimeline(peer->slot, message.ask_timeline().path());
    case v1::ToDaemon::kAskGrace:
      return AskGrace(peer->slot, message.ask_grace().milliseconds());
    case v1::ToDaemon::KIND_NOT_SET:
      return connections_.TurnAway(*peer, kSentNoMessage);
  }
}

// ---- who may speak ----

int LinkServer::FindToken(const std::string& token) const {
  int found = -1;
  for (int slot = 0; slot < options_.slots; ++slot) {
    if (!token.empty() && SameSecret(workers_[slot].token, token)) found = slot;
  }
  return found;
}

void LinkServer::Claim(LinkPeer* peer, const v1::Claim& claim) {
  if (claim.protocol() != kLinkBProtocol) {
    return Refuse(peer, OtherProtocol(claim.protocol(), claim.version()));
  }
  const int slot = FindToken(claim.token());
  if (slot < 0) {
    connections_.TellOfStranger(*peer, kWrongClaim);
    return Refuse(peer, kWrongToken);
  }
  connections_.HearOut(slot);  // a former link may have closed in the same moment
  if (const LinkPeer* former = connections_.SpeakerOf(slot); former != nullptr) {
    if (!former->Ended(0)) {
      return Refuse(peer,
                    absl::StrCat(epochs_.members().Name(slot), " is already taken by process ",
                                 former->pid(), ", which is still running; a rank is one process"));
    }
    connections_.Close(former->fd());
  }
  connections_.SpeaksFor(slot, peer);
  epochs_.Back(slot);
  v1::ToWorker message;
  message.mutable_welcome()->set_member(workers_[slot].member);
  message.mutable_welcome()->set_job(options_.job);
  message.mutable_welcome()->set_elastic(options_.elastic);
  message.mutable_welcome()->set_share(workers_[slot].share);
  connections_.Send(slot, {message.SerializeAsString()});
}

// It is none of the rank's own: the rank stays who it is, whether it has been claimed or not.
void LinkServer::ClaimStore(LinkPeer* peer, const v1::StoreClaim& claim) {
  const int slot = FindToken(claim.token());
  StoreAnswer answer;
  answer.outcome = StoreOutcome::kRefused;
  if (claim.protocol() != kLinkBProtocol) {
    answer.text = OtherProtocol(claim.protocol(), claim.version());
  } else if (slot < 0) {
    connections_.TellOfStranger(*peer, kWrongClaim);
    answer.text = kWrongToken;
  } else {
    Connections::Released released = connections_.Release(peer);
    return options_.store->Adopt(slot, std::move(released.socket), std::move(released.rest));
  }
  connections_.SendLast(peer, EncodeStoreAnswer(answer).Whole());
}

void LinkServer::Refuse(LinkPeer* peer, const std::string& text) {
  v1::ToWorker message;
  message.mutable_refused()->set_message(text);
  connections_.SendLast(peer, message.SerializeAsString());
}

// ---- what a member says ----

void LinkServer::TakeAddress(LinkPeer* peer, const v1::Address& address) {
  const uint64_t bytes = address.arena_bytes();
  std::vector<Descriptor> files = peer->TakeDescriptors();
  if (files.size() != (bytes > 0 ? 1 : 0)) {
    return Refuse(peer, absl::StrCat(epochs_.members().Name(peer->slot), " says ", bytes,
                                     " bytes of arena and sends ", files.size(), " descriptors"));
  }
  if (bytes > 0) {
    const absl::Status fine = ArenaBox::Check(files[0], bytes);
    if (!fine.ok()) {
      return Refuse(
          peer, absl::StrCat(epochs_.members().Name(peer->slot), " is refused: ", fine.message()));
    }
  }
  epochs_.TakeAddress(peer->slot, address, bytes > 0 ? std::move(files[0]) : Descriptor());
}

// Reports a failed init, unless others have ended the rank's epoch, which is no fault of its own.
// Ranks that have met it in an epoch wait for it.
void LinkServer::NoteInitFailed(int slot, const std::string& why) {
  const Attendance& book = epochs_.book();
  if (book.after_abort(slot) || !epochs_.members().AbortHeardBy(slot).cause.empty()) return;
  v1::Event event;
  v1::RankInitFailed& failed = *event.mutable_rank_init_failed();
  failed.set_member(workers_[slot].member);
  failed.set_message(why);
  failed.set_joined(book.in_live_epoch(slot));
  if (failed.joined()) {
    const std::string cause =
        absl::StrCat("hvd_init of ", epochs_.members().Name(slot), " failed: ", why);
    epochs_.Broke(slot, cause, false);
  }
  options_.on_event(std::move(event));
}

void LinkServer::AskTimeline(int slot, const std::string& path) {
  v1::Event event;
  event.mutable_timeline_asked()->set_member(workers_[slot].member);
  event.mutable_timeline_asked()->set_path(path);
  options_.on_event(std::move(event));
}

void LinkServer::AskGrace(int slot, uint64_t milliseconds) {
  v1::Event event;
  event.mutable_grace_asked()->set_member(workers_[slot].member);
  event.mutable_grace_asked()->set_milliseconds(milliseconds);
  options_.on_event(std::move(event));
}

}  // namespace hvd
