// SPDX-License-Identifier: Apache-2.0
// The words of this host's workers: who may speak for a member, by its token, and where each
// message goes. Belongs to the links thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "daemon/connections/store_relay.h"
#include "daemon/link_b/link_parts.h"
#include "daemon/link_b/member_ends.h"
#include "hvd/v1/link_b.pb.h"

namespace hvd::daemon {

struct MemberWordsOptions {
  std::string job;
  int slots = 0;
  StoreRelay* store = nullptr;  // gets the connections of the store's
};

class MemberWords {
 public:
  // `ends` outlives it.
  MemberWords(LinkParts parts, MemberWordsOptions options, MemberEnds* ends)
      : parts_(std::move(parts)),
        options_(std::move(options)),
        ends_(ends),
        tokens_(options_.slots) {}

  // Whoever shows it may speak for the member in the slot; empty: nobody may.
  void SetToken(int slot, std::string token) { tokens_[slot] = std::move(token); }
  void OnMessage(LinkPeer* peer, const std::string& bytes);

 private:
  void Handle(LinkPeer* peer, const v1::ToDaemon& message);
  void Claim(LinkPeer* peer, const v1::Claim& claim);
  bool FormerGivesWay(LinkPeer* peer, int slot);
  void Welcome(int slot);
  void ClaimStore(LinkPeer* peer, const v1::StoreClaim& claim);
  int FindToken(const std::string& token) const;
  void TakeAddress(LinkPeer* peer, const v1::Address& address);
  void AskTimeline(int slot, const std::string& path);
  void AskGrace(int slot, uint64_t milliseconds);
  void Refuse(LinkPeer* peer, const std::string& text);
  std::string Name(int slot) const { return parts_.epochs->members().Name(slot); }

  const LinkParts parts_;
  const MemberWordsOptions options_;
  MemberEnds* const ends_;
  std::vector<std::string> tokens_;  // by slot
};

}  // namespace hvd::daemon
