// SPDX-License-Identifier: Apache-2.0
// libhvd's side of link B's messages (proto/hvd/v1/link_b.proto says what the numbers mean). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hostfile/topology.h"

namespace hvd::rt {

std::string EncodeClaim(std::string_view token);
// The first word on a connection of the store's.
std::string EncodeStoreClaim(std::string_view token);
std::string EncodeJoin();
std::string EncodeWithdraw(uint64_t epoch);
struct AddressWords {
  uint64_t epoch = 0;
  std::string_view address;
  uint64_t arena_bytes = 0;  // not 0: the arena's descriptor goes with the frame
  uint64_t memory_bytes = 0;
};
std::string EncodeAddress(const AddressWords& words);
std::string EncodeReady(uint64_t epoch);
std::string EncodeLeave(uint64_t epoch);
std::string EncodeAskTimeline(std::string_view path);
std::string EncodeAskGrace(uint64_t milliseconds);
std::string EncodeInitFailed(std::string_view message);

enum class ToWorkerKind {
  kNone = 0,
  kWelcome,
  kRefused,
  kEpochStart,
  kTable,
  kGo,
  kTimelineAnswer = 14
};

// The driver's word to all on what is to become of the members' state in an elastic job's epoch.
struct StateWords {
  uint64_t resume_commit = 0;  // 0: nothing has been committed
  int root = -1;               // the rank whose state the needy get; -1: nobody has any
  std::vector<int> needy;      // ascending
  bool rolls_back = false;
  int survivors = 0;
};

// Any of the daemon's messages; the fields of its kind are filled.
struct ToWorkerMessage {
  ToWorkerKind kind = ToWorkerKind::kNone;
  uint64_t member = 0;                 // welcome
  std::string job;                     // welcome
  std::string text;                    // refused; timeline answer: what went wrong
  bool is_elastic = false;             // welcome
  int share = 0;                       // welcome
  bool is_removed = false;             // refused: this member is in no later epoch
  uint64_t epoch = 0;                  // refused and the other kinds
  std::string token;                   // epoch start
  int rank = 0;                        // epoch start
  std::vector<HostShape> hosts;        // epoch start
  StateWords state;                    // epoch start
  int state_files = 0;                 // epoch start: so many descriptors of them come last
  std::vector<std::string> addresses;  // table
  std::vector<uint64_t> arena_bytes;   // table: by local rank
};

// False when the bytes are no such message.
bool DecodeToWorker(std::string_view bytes, ToWorkerMessage* message);

}  // namespace hvd::rt
