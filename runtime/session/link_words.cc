// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/link_words.h"

#include "proto/hello.h"
#include "proto/wire.h"

namespace hvd::rt {
namespace {

// Field numbers of ToDaemon's kinds.
enum {
  kClaim = 1,
  kJoin = 2,
  kAddress = 3,
  kReady = 4,
  kLeave = 5,
  kInitFailed = 6,
  kWithdraw = 7,
  kAskTimeline = 14,
  kAskGrace = 16,
  kStoreClaim = 15
};

constexpr size_t kLongestReason = 4096;

std::string Wrap(int kind, const WireWriter& message) {
  return WireWriter().Bytes(kind, message.bytes()).bytes();
}

bool DecodeHost(std::string_view bytes, HostShape* host) {
  WireReader reader(bytes);
  std::vector<int64_t> numbers;
  while (reader.Next()) {
    if (reader.field() == 1) host->name = std::string(reader.bytes());
    if (reader.field() == 2) host->ranks = static_cast<int>(reader.number());
    if (reader.field() == 3 && !reader.Packed(&numbers)) return false;
  }
  host->numbers.assign(numbers.begin(), numbers.end());
  return reader.ok() && host->ranks > 0 && host->ranks <= 65536;
}

bool DecodeWelcome(std::string_view bytes, ToWorkerMessage* message) {
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == 1) message->member = reader.number();
    if (reader.field() == 2) message->job = std::string(reader.bytes());
    if (reader.field() == 3) message->is_elastic = reader.number() != 0;
    if (reader.field() == 4) message->share = static_cast<int>(reader.number());
  }
  return reader.ok();
}

// Decodes a sint32: zigzag.
int Signed(uint64_t number) {
  return static_cast<int>(static_cast<int64_t>(number >> 1) ^ -static_cast<int64_t>(number & 1));
}

// False: they do not parse.
bool DecodeStateField(const WireReader& reader, ToWorkerMessage* message) {
  StateWords& state = message->state;
  if (reader.field() == 5) state.resume_commit = reader.number();
  if (reader.field() == 6) state.root = Signed(reader.number());
  if (reader.field() == 8) state.rolls_back = reader.number() != 0;
  if (reader.field() == 9) state.survivors = static_cast<int>(reader.number());
  if (reader.field() == 10) message->state_files = static_cast<int>(reader.number());
  if (reader.field() != 7) return true;
  std::vector<int64_t> ranks;
  if (!reader.Packed(&ranks)) return false;
  for (const int64_t rank : ranks) state.needy.push_back(static_cast<int>(rank));
  return true;
}

bool DecodeEpochStart(std::string_view bytes, ToWorkerMessage* message) {
  message->state.root = 0;  // what is 0 is not sent
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == 1) message->epoch = reader.number();
    if (reader.field() == 2) message->token = std::string(reader.bytes());
    if (reader.field() == 3) message->rank = static_cast<int>(reader.number());
    if (reader.field() == 4) {
      HostShape host;
      if (!DecodeHost(reader.bytes(), &host)) return false;
      message->hosts.push_back(std::move(host));
    }
    if (reader.field() > 4 && !DecodeStateField(reader, message)) return false;
  }
  return reader.ok();
}

bool DecodeTable(std::string_view bytes, ToWorkerMessage* message) {
  WireReader reader(bytes);
  std::vector<int64_t> arenas;
  while (reader.Next()) {
    if (reader.field() == 1) message->epoch = reader.number();
    if (reader.field() == 2) message->addresses.emplace_back(reader.bytes());
    if (reader.field() == 3 && !reader.Packed(&arenas)) return false;
  }
  message->arena_bytes.assign(arenas.begin(), arenas.end());
  return reader.ok();
}

// Go: an epoch in field 1. Refused and the answer about a timeline: a text there, an epoch in field
// 2, and in field 3 whether it is for good.
bool DecodeRest(std::string_view bytes, ToWorkerMessage* message) {
  WireReader reader(bytes);
  const int epoch_field = message->kind == ToWorkerKind::kGo ? 1 : 2;
  while (reader.Next()) {
    if (reader.field() == epoch_field) {
      message->epoch = reader.number();
    } else if (reader.field() == 1) {
      message->text = std::string(reader.bytes());
    } else if (reader.field() == 3) {
      message->is_removed = reader.number() != 0;
    }
  }
  return reader.ok();
}

}  // namespace

std::string EncodeClaim(std::string_view token) {
  return Wrap(kClaim, WireWriter().Bytes(1, token).Number(2, kLinkBProtocol).Bytes(3, HVD_VERSION));
}

std::string EncodeStoreClaim(std::string_view token) {
  return Wrap(kStoreClaim,
              WireWriter().Bytes(1, token).Number(2, kLinkBProtocol).Bytes(3, HVD_VERSION));
}

std::string EncodeJoin() { return Wrap(kJoin, WireWriter()); }

std::string EncodeWithdraw(uint64_t epoch) {
  return Wrap(kWithdraw, WireWriter().Number(1, epoch));
}

std::string EncodeAddress(const AddressWords& words) {
  WireWriter message;
  message.Number(1, words.epoch).Bytes(2, words.address);
  if (words.arena_bytes > 0) message.Number(3, words.arena_bytes);
  return Wrap(kAddress, message.Number(4, words.memory_bytes));
}

std::string EncodeReady(uint64_t epoch) { return Wrap(kReady, WireWriter().Number(1, epoch)); }

std::string EncodeAskTimeline(std::string_view path) {
  return Wrap(kAskTimeline, WireWriter().Bytes(1, path));
}

std::string EncodeAskGrace(uint64_t milliseconds) {
  return Wrap(kAskGrace, WireWriter().Number(1, milliseconds));
}

std::string EncodeLeave(uint64_t epoch) { return Wrap(kLeave, WireWriter().Number(1, epoch)); }

std::string EncodeInitFailed(std::string_view message) {
  return Wrap(kInitFailed, WireWriter().Bytes(1, message.substr(0, kLongestReason)));
}

bool DecodeToWorker(std::string_view bytes, ToWorkerMessage* message) {
  WireReader reader(bytes);
  if (!reader.Next() || reader.field() < 1) return false;
  const auto last = static_cast<int>(ToWorkerKind::kGo);
  const auto answer = static_cast<int>(ToWorkerKind::kTimelineAnswer);
  if (reader.field() > last && reader.field() != answer) return false;
  message->kind = static_cast<ToWorkerKind>(reader.field());
  switch (message->kind) {
    case ToWorkerKind::kWelcome:
      return DecodeWelcome(reader.bytes(), message);
    case ToWorkerKind::kEpochStart:
      return DecodeEpochStart(reader.bytes(), message);
    case ToWorkerKind::kTable:
      return DecodeTable(reader.bytes(), message);
    default:
      return DecodeRest(reader.bytes(), message);
  }
}

}  // namespace hvd::rt
