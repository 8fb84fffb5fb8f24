// SPDX-License-Identifier: Apache-2.0
#include "daemon/link_b/member_words.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/hello.h"

namespace hvd::daemon {
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

void MemberWords::OnMessage(LinkPeer* peer, const std::string& bytes) {
  v1::ToDaemon message;
  const bool parsed = message.ParseFromString(bytes);
  if (!parsed || (message.has_claim() || message.has_store_claim()) != (peer->slot < 0)) {
    return parts_.connections->TurnAway(*peer, kSentNoMessage);
  }
  Handle(peer, message);
}

void MemberWords::Handle(LinkPeer* peer, const v1::ToDaemon& message) {
  switch (message.kind_case()) {
    case v1::ToDaemon::kClaim:
      return Claim(peer, message.claim());
    case v1::ToDaemon::kStoreClaim:
      return ClaimStore(peer, message.store_claim());
    case v1::ToDaemon::kJoin:
      return parts_.epochs->Join(peer->slot);
    case v1::ToDaemon::kWithdraw:
      return parts_.epochs->Withdraw(peer->slot, message.withdraw().epoch());
    case v1::ToDaemon::kAddress:
      return TakeAddress(peer, message.address());
    case v1::ToDaemon::kReady:
      return parts_.epochs->Ready(peer->slot, message.ready().epoch());
    case v1::ToDaemon::kLeave:
      return parts_.epochs->Leave(peer->slot, message.leave().epoch());
    case v1::ToDaemon::kInitFailed:
      return ends_->InitFailed(peer->slot, message.init_failed().message());
    case v1::ToDaemon::kAskTimeline:
      return AskTimeline(peer->slot, message.ask_timeline().path());
    case v1::ToDaemon::kAskGrace:
      return AskGrace(peer->slot, message.ask_grace().milliseconds());
    case v1::ToDaemon::KIND_NOT_SET:
      return parts_.connections->TurnAway(*peer, kSentNoMessage);
  }
}

// ---- who may speak ----

int MemberWords::FindToken(const std::string& token) const {
  int found = -1;
  for (int slot = 0; slot < options_.slots; ++slot) {
    if (!token.empty() && SameSecret(tokens_[slot], token)) found = slot;
  }
  return found;
}

void MemberWords::Claim(LinkPeer* peer, const v1::Claim& claim) {
  if (claim.protocol() != kLinkBProtocol) {
    return Refuse(peer, OtherProtocol(claim.protocol(), claim.version()));
  }
  const int slot = FindToken(claim.token());
  if (slot < 0) {
    parts_.connections->TellOfStranger(*peer, kWrongClaim);
    return Refuse(peer, kWrongToken);
  }
  if (!FormerGivesWay(peer, slot)) return;
  parts_.connections->SpeaksFor(slot, peer);
  parts_.epochs->Back(slot);
  Welcome(slot);
}

// Whether nobody else speaks for the slot any more; else `peer` is refused.
bool MemberWords::FormerGivesWay(LinkPeer* peer, int slot) {
  parts_.connections->HearOut(slot);  // a former link may have closed in the same moment
  const LinkPeer* former = parts_.connections->SpeakerOf(slot);
  if (former == nullptr) return true;
  if (former->Ended(0)) {
    parts_.connections->Close(former->fd());
    return true;
  }
  Refuse(peer, absl::StrCat(Name(slot), " is already taken by process ", former->pid(),
                            ", which is still running; a rank is one process"));
  return false;
}

void MemberWords::Welcome(int slot) {
  const WorkerSlot& worker = (*parts_.workers)[slot];
  v1::ToWorker message;
  message.mutable_welcome()->set_member(worker.member);
  message.mutable_welcome()->set_job(options_.job);
  message.mutable_welcome()->set_elastic(parts_.elastic);
  message.mutable_welcome()->set_share(worker.share);
  parts_.connections->Send(slot, {message.SerializeAsString()});
}

// It is none of the rank's own: the rank stays who it is, whether it has been claimed or not.
void MemberWords::ClaimStore(LinkPeer* peer, const v1::StoreClaim& claim) {
  const int slot = FindToken(claim.token());
  StoreAnswer answer;
  answer.outcome = StoreOutcome::kRefused;
  if (claim.protocol() != kLinkBProtocol) {
    answer.text = OtherProtocol(claim.protocol(), claim.version());
  } else if (slot < 0) {
    parts_.connections->TellOfStranger(*peer, kWrongClaim);
    answer.text = kWrongToken;
  } else {
    Connections::Released released = parts_.connections->Release(peer);
    return options_.store->Adopt(slot, std::move(released.socket), std::move(released.rest));
  }
  parts_.connections->SendLast(peer, EncodeStoreAnswer(answer).Whole());
}

void MemberWords::Refuse(LinkPeer* peer, const std::string& text) {
  v1::ToWorker message;
  message.mutable_refused()->set_message(text);
  parts_.connections->SendLast(peer, message.SerializeAsString());
}

// ---- what a member says ----

void MemberWords::TakeAddress(LinkPeer* peer, const v1::Address& address) {
  const uint64_t bytes = address.arena_bytes();
  std::vector<Descriptor> files = peer->TakeDescriptors();
  if (files.size() != (bytes > 0 ? 1 : 0)) {
    return Refuse(peer, absl::StrCat(Name(peer->slot), " says ", bytes,
                                     " bytes of arena and sends ", files.size(), " descriptors"));
  }
  if (bytes > 0) {
    const absl::Status fine = ArenaBox::Check(files[0], bytes);
    if (!fine.ok()) {
      return Refuse(peer, absl::StrCat(Name(peer->slot), " is refused: ", fine.message()));
    }
  }
  parts_.epochs->TakeAddress(peer->slot, address, bytes > 0 ? std::move(files[0]) : Descriptor());
}

void MemberWords::AskTimeline(int slot, const std::string& path) {
  v1::Event event;
  event.mutable_timeline_asked()->set_member((*parts_.workers)[slot].member);
  event.mutable_timeline_asked()->set_path(path);
  parts_.on_event(std::move(event));
}

void MemberWords::AskGrace(int slot, uint64_t milliseconds) {
  v1::Event event;
  event.mutable_grace_asked()->set_member((*parts_.workers)[slot].member);
  event.mutable_grace_asked()->set_milliseconds(milliseconds);
  parts_.on_event(std::move(event));
}

}  // namespace hvd::daemon
