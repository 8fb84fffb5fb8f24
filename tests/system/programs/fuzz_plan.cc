// SPDX-License-Identifier: Apache-2.0
#include "tests/system/programs/fuzz_plan.h"

#include <algorithm>
#include <numeric>

namespace fuzz {
namespace {

// Draws the calls of one round.
class Draw {
 public:
  Draw(const std::vector<Set>& sets, Random* random) : sets_(sets), random_(*random) {}

  Operation Call(int index, bool joins) {
    Operation call;
    call.index = index;
    call.set = random_.Of(sets_);
    call.kind = static_cast<Kind>(random_.Below(kKinds));
    if (call.kind == Kind::kSend && call.set.size() < 2) call.kind = Kind::kBarrier;
    call.takes_part.assign(static_cast<size_t>(call.set.size()), true);
    call.blocking = call.kind != Kind::kSend && random_.OneIn(3);
    if (call.kind != Kind::kSend && !random_.OneIn(4)) call.name = Name(index);
    DrawTensors(&call);
    DrawReduction(&call, joins);
    call.root = random_.Below(call.set.size());
    if (!joins && call.set.size() > 1 && random_.OneIn(5)) DrawSpoil(&call);
    return call;
  }

 private:
  // Some names are long, and alike until far behind.
  std::string Name(int index) {
    const std::string number = std::to_string(index);
    return random_.OneIn(6) ? std::string(200, 'n') + number : "tensor." + number;
  }

  void DrawTensors(Operation* call) {
    if (call->kind == Kind::kBarrier) return;
    call->group = call->kind <= Kind::kReducescatter && random_.OneIn(3);
    const int count = call->group ? 1 + random_.Below(4) : 1;
    for (int i = 0; i < count; ++i) call->parts.push_back(DrawPart(*call));
    if (call->kind == Kind::kAlltoall) DrawSplits(call);
    if (call->kind == Kind::kSend) {
      call->from = random_.Below(call->set.size());
      call->to = (call->from + 1 + random_.Below(call->set.size() - 1)) % call->set.size();
    }
  }

  Part DrawPart(const Operation& call) {
    Part part;
    part.type = random_.Of(Types());
    const bool may_be_scalar = call.kind == Kind::kAllreduce || call.kind == Kind::kBroadcast;
    part.scalar = may_be_scalar && random_.OneIn(8);
    for (int i = random_.Below(3); i > 0; --i) part.tail.push_back(random_.OneIn(9) ? 0 : Extent());
    const bool free_rows = call.kind == Kind::kAllgather;
    const int64_t rows = Rows();
    for (int member = 0; member < call.set.size(); ++member) {
      part.rows.push_back(free_rows ? (random_.OneIn(3) ? 0 : Rows()) : rows);
    }
    return part;
  }

  int64_t Extent() { return 1 + random_.Below(random_.OneIn(4) ? 40 : 4); }
  int64_t Rows() {
    if (random_.OneIn(9)) return 0;
    return 1 + random_.Below(random_.OneIn(12) ? 20000 : random_.OneIn(3) ? 700 : 9);
  }

  void DrawSplits(Operation* call) {
    Part& part = call->parts[0];
    const auto members = static_cast<size_t>(call->set.size());
    call->even_splits = random_.OneIn(3);
    call->splits.assign(members, std::vector<int64_t>(members));
    const int64_t even = random_.Below(6);
    for (size_t from = 0; from < members; ++from) {
      int64_t sum = 0;
      for (size_t to = 0; to < members; ++to) {
        const int64_t rows = call->even_splits ? even : random_.OneIn(3) ? 0 : random_.Below(9);
        sum += call->splits[from][to] = rows;
      }
      part.rows[from] = sum + (call->even_splits || random_.OneIn(2) ? 0 : random_.Below(3));
    }
  }

  void DrawReduction(Operation* call, bool joins) {
    if (call->kind != Kind::kAllreduce && call->kind != Kind::kReducescatter) return;
    const std::vector<hvd_op_t> ops = {HVD_SUM, HVD_AVERAGE, HVD_MIN, HVD_MAX, HVD_PRODUCT,
                                       HVD_SUM, HVD_BAND,    HVD_BOR, HVD_BXOR};
    call->op = random_.Of(ops);
    const auto fits = [&](const Part& part) { return Reduces(part.type, call->op); };
    if (!std::all_of(call->parts.begin(), call->parts.end(), fits)) call->op = HVD_SUM;
    const bool has_bool = std::any_of(call->parts.begin(), call->parts.end(), [](const Part& part) {
      return part.type.family == Type::kBool;
    });
    if (!has_bool && call->op <= HVD_MAX && call->op != HVD_ADASUM && random_.OneIn(4)) {
      call->prescale = random_.OneIn(2) ? 2 : 1;
      call->postscale = random_.OneIn(2) ? 0.5 : 2;
    }
    if (joins && call->op == HVD_AVERAGE && random_.OneIn(2)) {
      call->flags = HVD_AVERAGE_OVER_CONTRIBUTORS;
    }
    if (call->op == HVD_SUM && random_.OneIn(6)) call->compression = HVD_COMPRESSION_FP16;
  }

  void DrawSpoil(Operation* call) {
    std::vector<Spoil> kinds;
    if (call->kind == Kind::kBarrier) {
      kinds.push_back(Spoil::kKind);
    } else {
      for (const Spoil any : {Spoil::kType, Spoil::kShape}) kinds.push_back(any);
    }
    if (call->kind == Kind::kBroadcast) kinds.push_back(Spoil::kRoot);
    if (call->kind == Kind::kAllreduce && call->op == HVD_SUM) {
      for (const Spoil more : {Spoil::kOp, Spoil::kScale, Spoil::kKind}) kinds.push_back(more);
    }
    if (call->group) kinds.push_back(Spoil::kCount);
    call->spoil = random_.Of(kinds);
    call->spoiler = call->kind == Kind::kSend ? call->to : random_.Below(call->set.size());
    // Without an element the shape says nothing.
    if (call->kind == Kind::kSend && call->parts[0].Elements(0) == 0) call->spoil = Spoil::kType;
    // A scale is refused where there is a bool, whatever the others ask for.
    for (const Part& part : call->parts) {
      if (call->spoil == Spoil::kScale && part.type.family == Type::kBool) call->spoil = Spoil::kOp;
      // A sum of bools is their maximum by another name, yet not the same request.
      if (call->spoil == Spoil::kOp && part.type.family == Type::kComplex)
        call->spoil = Spoil::kType;
    }
  }

  const std::vector<Set>& sets_;
  Random& random_;
};

// The type that a spoiler's first part has instead.
Type Another(const Type& type) { return type.code == HVD_INT32 ? Types()[7] : Types()[5]; }

int64_t Product(const std::vector<int64_t>& extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace

int Set::IndexOf(int rank) const {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

int64_t Part::RowElements() const { return scalar ? 1 : Product(tail); }

int64_t Part::Elements(int member) const { return Product(Shape(member)); }

std::vector<int64_t> Part::Shape(int member) const {
  if (scalar) return {};
  std::vector<int64_t> shape = {rows[static_cast<size_t>(member)]};
  shape.insert(shape.end(), tail.begin(), tail.end());
  return shape;
}

bool Round::HasBlockingBarrier() const {
  return std::any_of(operations.begin(), operations.end(),
                     [](const Operation& call) { return call.IsBlockingBarrier(); });
}

Round DrawRound(const std::vector<Set>& sets, int world_size, int first_index, Random* random) {
  Round round;
  round.joins = random->OneIn(4);
  round.two_threads = !round.joins && random->OneIn(3);
  Draw draw(sets, random);
  const int count = 1 + random->Below(12);
  std::vector<int> done_by(static_cast<size_t>(world_size), count);
  for (int rank = 0; rank < world_size; ++rank) {
    if (round.joins) done_by[static_cast<size_t>(rank)] = random->Below(count + 1);
    if (random->OneIn(2)) round.late.push_back(rank);
  }
  for (int i = 0; i < count; ++i) {
    Operation call = draw.Call(first_index + i, round.joins);
    for (int member = 0; member < call.set.size(); ++member) {
      const auto rank = static_cast<size_t>(call.set.ranks[static_cast<size_t>(member)]);
      call.takes_part[static_cast<size_t>(member)] = i < done_by[rank];
    }
    call.late_for_some = !round.joins && !call.blocking && !call.IsOrdered() && random->OneIn(2);
    round.operations.push_back(std::move(call));
  }
  if (round.HasBlockingBarrier()) round.two_threads = false;
  const bool all_wait_alike =
      std::all_of(round.operations.begin(), round.operations.end(), [&](const Operation& call) {
        return !call.IsBlockingBarrier() || call.set.id == HVD_GLOBAL_PROCESS_SET;
      });
  if (!all_wait_alike) round.late.clear();
  return round;
}

Operation AsCalledBy(const Operation& operation, int member) {
  Operation called = operation;
  if (member != operation.spoiler) return called;
  const Type whole = Types()[5];
  switch (operation.spoil) {
    case Spoil::kNothing:
      break;
    case Spoil::kType: {
      // The last one, so that a group begins alike.
      Part& part = called.parts.back();
      part.type = Another(part.type);
      break;
    }
    case Spoil::kShape:
      called.parts.back().scalar = false;
      called.parts.back().tail.push_back(3);
      break;
    case Spoil::kOp:
      called.op = HVD_MAX;
      called.compression = HVD_COMPRESSION_NONE;
      break;
    case Spoil::kScale:
      called.prescale = 4;
      break;
    case Spoil::kRoot:
      called.root = (called.root + 1) % called.set.size();
      break;
    case Spoil::kCount:
      called.parts.push_back(called.parts.back());
      break;
    case Spoil::kKind:
      called.kind = Kind::kBroadcast;
      called.group = false;
      called.op = HVD_AVERAGE;
      called.prescale = called.postscale = 1;
      called.compression = HVD_COMPRESSION_NONE;
      if (called.parts.empty()) {
        called.parts = {{whole, false, {}, std::vector<int64_t>(operation.set.ranks.size(), 2)}};
      }
      called.parts.resize(1);
      break;
  }
  return called;
}

}  // namespace fuzz
