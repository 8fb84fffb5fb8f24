// SPDX-License-Identifier: Apache-2.0
// What a round of calls is: drawn from a seed, so the same on all ranks; and what each call must
// give. Pure.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/system/programs/fuzz_values.h"

namespace fuzz {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int Below(int end) { return static_cast<int>(engine_() % static_cast<uint64_t>(end)); }
  bool OneIn(int count) { return Below(count) == 0; }
  template <typename T>
  const T& Of(const std::vector<T>& all) {
    return all[static_cast<size_t>(Below(static_cast<int>(all.size())))];
  }

 private:
  std::mt19937_64 engine_;
};

struct Set {
  int32_t id = HVD_GLOBAL_PROCESS_SET;
  std::vector<int> ranks;

  int size() const { return static_cast<int>(ranks.size()); }
  int IndexOf(int rank) const;  // -1: no member
};

enum class Kind { kAllreduce, kAllgather, kReducescatter, kBroadcast, kAlltoall, kBarrier, kSend };
constexpr int kKinds = 7;

// One tensor of a call. Members may differ in the first dimension where the kind allows it.
struct Part {
  Type type;
  bool scalar = false;
  std::vector<int64_t> tail;  // the dimensions behind the first
  std::vector<int64_t> rows;  // by member

  int64_t RowElements() const;
  int64_t Elements(int member) const;
  std::vector<int64_t> Shape(int member) const;
};

// In what one member's call differs from the others'.
enum class Spoil { kNothing, kType, kShape, kOp, kRoot, kKind, kCount, kScale };

struct Operation {
  int index = 0;  // within the seed; what the values are made of
  Kind kind = Kind::kAllreduce;
  Set set;
  std::string name;
  bool group = false;
  bool blocking = false;
  hvd_op_t op = HVD_SUM;
  double prescale = 1, postscale = 1;
  int32_t flags = 0;
  hvd_compression_t compression = HVD_COMPRESSION_NONE;
  int root = 0;                              // a member
  int from = 0, to = 0;                      // of a send: members
  std::vector<Part> parts;                   // none of a barrier
  std::vector<std::vector<int64_t>> splits;  // of an alltoall: by sender and receiver
  bool even_splits = false;                  // they are left to the library
  std::vector<bool> takes_part;              // by member; who does not has joined
  int spoiler = -1;                          // a member; the difference:
  Spoil spoil = Spoil::kNothing;
  bool late_for_some = false;  // those of Round::late submit it behind the barrier

  // Whether its place among the calls of its set is what tells it from others.
  bool IsOrdered() const { return name.empty(); }
  bool IsBlockingBarrier() const { return kind == Kind::kBarrier && blocking; }
  bool Concerns(int member) const { return kind != Kind::kSend || member == from || member == to; }
};

struct Round {
  bool joins = false;
  bool two_threads = false;
  std::vector<int> late;  // ranks that submit some calls behind the barrier that others put before
  std::vector<Operation> operations;

  bool HasBlockingBarrier() const;
  // Whether a rank waits for all that it has submitted, so that the order of what others submit
  // matters.
  bool IsStrict() const { return joins || HasBlockingBarrier(); }
};

Round DrawRound(const std::vector<Set>& sets, int world_size, int first_index, Random* random);

// As the member calls it: the spoiler's call is another.
Operation AsCalledBy(const Operation& operation, int member);

// The element that a member gives.
Value Input(const Operation& operation, size_t part, int member, int64_t element);

// HVD_OK or HVD_ERR_MISMATCH, for a member that takes part.
hvd_status_t ExpectedStatus(const Operation& operation);
// The shape of the part's result, and its elements, if the call succeeds.
std::vector<int64_t> ExpectedShape(const Operation& operation, size_t part, int member);
Value Expected(const Operation& operation, size_t part, int member, int64_t element);
// Whether that is what must be there to the last bit.
bool IsExact(const Operation& operation, const Part& part);

}  // namespace fuzz
