// SPDX-License-Identifier: Apache-2.0
// What a call must give, one element at a time.
#include <algorithm>
#include <cmath>

#include "tests/system/programs/fuzz_plan.h"

namespace fuzz {
namespace {

using Members = std::vector<int>;

Members ThoseWho(const Operation& operation, bool take_part) {
  Members found;
  for (int member = 0; member < operation.set.size(); ++member) {
    if (operation.takes_part[static_cast<size_t>(member)] == take_part) found.push_back(member);
  }
  return found;
}

// A whole number is a double that is truncated.
Value Scaled(const Type& type, Value value, double scale) {
  value *= scale;
  return type.IsWhole() ? Value(std::trunc(value.real())) : value;
}

Value Combined(hvd_op_t op, const Type& type, Value a, Value b) {
  const auto bits_a = static_cast<int64_t>(a.real()), bits_b = static_cast<int64_t>(b.real());
  switch (op) {
    case HVD_MIN:
      return std::min(a.real(), b.real());
    case HVD_MAX:
      return std::max(a.real(), b.real());
    case HVD_PRODUCT:
      return a * b;
    case HVD_BAND:
      return static_cast<double>(bits_a & bits_b);
    case HVD_BOR:
      return static_cast<double>(bits_a | bits_b);
    case HVD_BXOR:
      return static_cast<double>(bits_a ^ bits_b);
    default:
      return type.family == Type::kBool ? Value(std::max(a.real(), b.real())) : a + b;
  }
}

// Inputs of ranks that have joined do not count; these ranks count in an average's divisor.
Value Reduced(const Operation& call, size_t part, int64_t element) {
  const Type& type = call.parts[part].type;
  const Members givers = ThoseWho(call, true);
  Value sum = 0;
  for (const int giver : givers) {
    const Value given = Scaled(type, Input(call, part, giver, element), call.prescale);
    sum = giver == givers.front() ? given : Combined(call.op, type, sum, given);
  }
  // A sum's zero, as any neutral value, changes nothing: but that the sum of one is "one".
  if (call.op != HVD_AVERAGE) return Scaled(type, sum, call.postscale);
  const bool by_givers = call.flags & HVD_AVERAGE_OVER_CONTRIBUTORS;
  const auto divisor = static_cast<double>(by_givers ? givers.size() : call.set.ranks.size());
  return Scaled(type, sum, call.postscale / divisor);
}

// The rows of a reduce-scatter that a member has: first and count.
std::pair<int64_t, int64_t> RowsOf(int64_t rows, int members, int member) {
  const int64_t each = rows / members, more = rows % members;
  return {each * member + std::min<int64_t>(member, more), each + (member < more ? 1 : 0)};
}

int64_t RowsGiven(const Operation& call, size_t part, int member) {
  return call.takes_part[static_cast<size_t>(member)]
             ? call.parts[part].rows[static_cast<size_t>(member)]
             : 0;
}

Value Gathered(const Operation& call, size_t part, int64_t element) {
  for (int giver = 0; giver < call.set.size(); ++giver) {
    const int64_t given = RowsGiven(call, part, giver) * call.parts[part].RowElements();
    if (element < given) return Input(call, part, giver, element);
    element -= given;
  }
  return std::nan("");
}

Value Exchanged(const Operation& call, int member, int64_t element) {
  const int64_t row = call.parts[0].RowElements();
  for (size_t giver = 0; giver < call.splits.size(); ++giver) {
    const std::vector<int64_t>& splits = call.splits[giver];
    const int64_t given = splits[static_cast<size_t>(member)] * row;
    if (element >= given) {
      element -= given;
      continue;
    }
    int64_t before = 0;
    for (int to = 0; to < member; ++to) before += splits[static_cast<size_t>(to)] * row;
    return Input(call, 0, static_cast<int>(giver), before + element);
  }
  return std::nan("");
}

}  // namespace

Value Input(const Operation& operation, size_t part, int member, int64_t element) {
  const Type& type = operation.parts[part].type;
  uint64_t mixed = static_cast<uint64_t>(operation.index) * 1000003 + part * 7919 +
                   static_cast<uint64_t>(member) * 104729 + static_cast<uint64_t>(element) * 31;
  mixed ^= mixed >> 7;
  const auto draw = [&](int shift) { return static_cast<double>(mixed >> shift & 1); };
  if (type.family == Type::kBool) return draw(0);
  const bool negative = type.family != Type::kUnsigned && draw(3) != 0 && draw(4) != 0;
  // 1 and 2 in a product, which stays a power of two; 0 to 1 in the types that hold few numbers.
  const double size = operation.op == HVD_PRODUCT ? 1 + draw(1)
                      : type.bytes == 1           ? draw(1)
                                                  : draw(1) + draw(2);
  const double real = negative ? -size : size;
  return type.family == Type::kComplex ? Value(real, draw(5)) : Value(real);
}

hvd_status_t ExpectedStatus(const Operation& operation) {
  if (operation.spoil != Spoil::kNothing) return HVD_ERR_MISMATCH;
  if (operation.kind == Kind::kSend) {
    const bool both = operation.takes_part[static_cast<size_t>(operation.from)] &&
                      operation.takes_part[static_cast<size_t>(operation.to)];
    return both ? HVD_OK : HVD_ERR_MISMATCH;
  }
  const bool with_joined = operation.kind == Kind::kAllreduce ||
                           operation.kind == Kind::kAllgather || operation.kind == Kind::kBarrier;
  return with_joined || ThoseWho(operation, false).empty() ? HVD_OK : HVD_ERR_MISMATCH;
}

std::vector<int64_t> ExpectedShape(const Operation& operation, size_t part, int member) {
  std::vector<int64_t> shape = operation.parts[part].Shape(member);
  if (operation.kind == Kind::kAllgather) {
    shape[0] = 0;
    for (int giver = 0; giver < operation.set.size(); ++giver) {
      shape[0] += RowsGiven(operation, part, giver);
    }
  } else if (operation.kind == Kind::kReducescatter) {
    shape[0] = RowsOf(shape[0], operation.set.size(), member).second;
  } else if (operation.kind == Kind::kAlltoall) {
    shape[0] = 0;
    for (const auto& splits : operation.splits) shape[0] += splits[static_cast<size_t>(member)];
  }
  return shape;
}

Value Expected(const Operation& operation, size_t part, int member, int64_t element) {
  const Part& tensor = operation.parts[part];
  switch (operation.kind) {
    case Kind::kAllreduce:
      return Reduced(operation, part, element);
    case Kind::kReducescatter: {
      const int64_t rows = tensor.rows[0];
      const int64_t first = RowsOf(rows, operation.set.size(), member).first;
      return Reduced(operation, part, first * tensor.RowElements() + element);
    }
    case Kind::kAllgather:
      return Gathered(operation, part, element);
    case Kind::kAlltoall:
      return Exchanged(operation, member, element);
    case Kind::kBroadcast:
      return Input(operation, part, operation.root, element);
    default:
      return Input(operation, part, operation.from, element);
  }
}

bool IsExact(const Operation& operation, const Part& part) {
  if (part.type.IsWhole()) return true;
  const bool reduces = operation.kind == Kind::kAllreduce || operation.kind == Kind::kReducescatter;
  return !reduces ||
         (operation.op != HVD_AVERAGE && operation.prescale == 1 && operation.postscale == 1);
}

}  // namespace fuzz
