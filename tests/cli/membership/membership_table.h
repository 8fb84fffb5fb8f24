// SPDX-License-Identifier: Apache-2.0
// A Membership for tests, with daemons that do at once what they are told: members stand when the
// test says so, and a host is quiet when all its members of the epoch have left or died.
#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/membership/membership.h"

namespace hvd::cli {

struct MembershipTable {
  explicit MembershipTable(int np, const ElasticOptions& options = {}, int stdin_rank = -1)
      : membership(np, options, stdin_rank) {}

  struct Spawned {
    int host, slot, share;
    bool stdin = false;
  };

  // Takes what it wants done and says it: "reach0 spawn0:1,2 propose1:1,2 abort1".
  std::string Wants() {
    std::string words;
    for (MembershipAction& action : membership.TakeActions()) {
      if (action.kind == MembershipAction::kSay) {
        said.push_back(action.text);
        continue;
      }
      if (!words.empty()) words += " ";
      words += Word(action);
      last = std::move(action);
    }
    return words;
  }

  // The last that a person was told.
  std::string Said() {
    Wants();
    return said.empty() ? "" : said.back();
  }

  std::string Word(const MembershipAction& action) {
    const std::string host = std::to_string(action.host);
    switch (action.kind) {
      case MembershipAction::kReach:
        return "reach" + host;
      case MembershipAction::kSpawn:
        for (const v1::Seat& seat : action.spawn.seats()) {
          members[seat.member()] = {action.host, static_cast<int>(seat.slot()),
                                    static_cast<int>(seat.share()), seat.stdin()};
        }
        expected = action.spawn.expected();
        return "spawn" + host + ":" + Numbers(action.spawn.seats());
      case MembershipAction::kPropose: {
        proposal = action.propose;
        std::string all;
        for (const v1::EpochHost& each : proposal.hosts()) {
          if (!all.empty()) all += "|";
          all += Numbers(each.members());
        }
        return "propose" + std::to_string(proposal.epoch()) + ":" + all;
      }
      case MembershipAction::kAnnounce:
        return "announce" + std::to_string(action.epoch);
      case MembershipAction::kAbort:
        return "abort" + std::to_string(action.epoch);
      case MembershipAction::kRetire:
        return (action.removed ? "remove" : "retire") + std::to_string(action.member);
      case MembershipAction::kStopHost:
        return "stop" + host;
      case MembershipAction::kEnd:
        end_text = action.text;
        return "end";
      case MembershipAction::kSay:
        break;
    }
    return "";
  }

  template <typename Seats>
  static std::string Numbers(const Seats& seats) {
    std::string words;
    for (const v1::Seat& seat : seats) {
      words += (words.empty() ? "" : ",") + std::to_string(seat.member());
    }
    return words;
  }

  void Stand(const std::vector<uint64_t>& numbers, uint64_t after) {
    for (const uint64_t member : numbers) membership.Stands(member, after, now);
  }
  // Each commit is a step of the program's.
  static KeptCommits Kept(uint64_t commit) {
    return {commit, commit > 0 ? commit - 1 : 0, commit, 0};
  }
  void Quiet(const std::vector<int>& hosts, uint64_t epoch, uint64_t commit) {
    for (const int host : hosts) membership.Quiet(host, epoch, Kept(commit), now);
  }
  // It leaves its epoch, and its process ends with code 0.
  void EndWell(uint64_t member, bool left = true) {
    MemberEnd end;
    end.epoch = membership.epoch();
    end.left = left;
    end.what = "member " + std::to_string(member) + " ended";
    Die(member, end);
  }
  // Ends a member whose epoch is `end.epoch`; the end is told whole at once.
  void Die(uint64_t member, const MemberEnd& end = {.signal = 9, .what = "a rank died"}) {
    membership.Died(member, end, now);
    membership.Freed(member, now);
  }
  std::vector<uint32_t> Needy() const { return {proposal.needy().begin(), proposal.needy().end()}; }
  // Hosts "h0", "h1", … with two shares each, the first epoch on all of them.
  void Start(int hosts, int shares = 2) {
    std::vector<BookHost> book;
    book.reserve(hosts);
    for (int i = 0; i < hosts; ++i) book.push_back({"h" + std::to_string(i), shares});
    membership.Listed(book, now);
    for (int i = 0; i < hosts; ++i) membership.HostReady(i, now);
    Wants();
    for (const auto& [member, place] : members) membership.Stands(member, 0, now);
    Wants();
    REQUIRE(proposal.epoch() == 1);
    membership.Started(1, now);
    REQUIRE(Wants().empty());
  }

  Membership membership;
  std::map<uint64_t, Spawned> members;
  std::vector<std::string> said;
  v1::EpochPropose proposal, expected;
  MembershipAction last = {MembershipAction::kSay};
  std::string end_text;
  double now = 1;
};

}  // namespace hvd::cli
