// SPDX-License-Identifier: Apache-2.0
#include "tests/system/programs/differential_plan.h"

#include <algorithm>
#include <cmath>

#include "tests/system/programs/checks.h"

namespace differential {
namespace {

constexpr int64_t kMostBytes = int64_t{3} << 20;

// Draws the bytes of all tensors of an operation; as often a few as megabytes.
int64_t DrawBytes(Random* random) {
  const std::vector<int64_t> most = {0, 64, 64, 4096, 4096, 70000, 70000, 300000, kMostBytes};
  return std::min(random->Of(most), 1 + random->Below(kMostBytes)) * random->Below(1000) / 999;
}

std::vector<int64_t> DrawRows(const Operation& operation, int64_t rows, Random* random) {
  const bool gathers =
      operation.kind == Kind::kAllgather || operation.kind == Kind::kGroupedAllgather;
  std::vector<int64_t> by_member(operation.set.ranks.size(), rows);
  for (int64_t& each : by_member) {
    if (gathers && random->OneIn(2)) each = random->OneIn(3) ? 0 : random->Below(rows + 1);
  }
  return by_member;
}

// Also with rows that go nowhere.
void DrawSplits(Operation* operation, Random* random) {
  std::vector<int64_t>& rows = operation->tensors[0].rows;
  for (int64_t& all : rows) {
    const int64_t most = all / static_cast<int64_t>(rows.size());
    all = random->Below(3);
    std::vector<int64_t>& mine = operation->splits.emplace_back();
    for (size_t peer = 0; peer < rows.size(); ++peer) {
      mine.push_back(random->OneIn(5) ? 0 : random->OneIn(2) ? most : random->Below(most + 1));
      all += mine.back();
    }
  }
}

Tensor DrawTensor(const Operation& operation, int64_t bytes, const Dtype& dtype, Random* random) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.columns = random->OneIn(20) ? 0 : random->OneIn(2) ? 1 : 1 + random->Below(40);
  const int64_t row_bytes =
      std::max<int64_t>(tensor.columns, 1) * static_cast<int64_t>(dtype.bytes);
  tensor.rows = DrawRows(operation, (bytes + row_bytes - 1) / row_bytes, random);
  return tensor;
}

// Scales that lose no bits, and have a neutral value beside joins.
void DrawReduction(bool beside_joins, Operation* operation, Random* random) {
  const auto any = [operation](const auto& is) {
    return std::any_of(operation->tensors.begin(), operation->tensors.end(),
                       [&](const Tensor& tensor) { return is(tensor.dtype); });
  };
  const bool bools = any([](const Dtype& dtype) { return dtype.code == HVD_BOOL; });
  std::vector<int> ops = {HVD_SUM, HVD_PRODUCT, HVD_SUM};
  if (!any(IsComplex)) ops.insert(ops.end(), {HVD_MIN, HVD_MAX});
  if (!any(IsFloat)) ops.insert(ops.end(), {HVD_BAND, HVD_BOR, HVD_BXOR});
  if (!bools) ops.insert(ops.end(), {HVD_AVERAGE, HVD_AVERAGE});
  const int op = operation->op = random->Of(ops);
  std::vector<double> scales = {1, 1, 1, 0.5, 2, 0.25};
  if (!any([](const Dtype& dtype) { return !IsSigned(dtype); })) scales.push_back(-1);
  const bool ordered = op == HVD_MIN || op == HVD_MAX;
  if (!bools && op != HVD_PRODUCT && !IsBitwise(static_cast<hvd_op_t>(op))) {
    operation->postscale = random->Of(scales);
    if (!ordered || !beside_joins) operation->prescale = random->Of(scales);
  }
  if (random->OneIn(6)) operation->compression = static_cast<int>(1 + random->Below(2));
  const bool averages = op == HVD_AVERAGE;
  if (averages && random->OneIn(3)) operation->flags = HVD_AVERAGE_OVER_CONTRIBUTORS;
}

Kind DrawKind(bool beside_joins, Random* random) {
  const std::vector<Kind> joinable = {Kind::kAllreduce, Kind::kAllgather, Kind::kGroupedAllreduce,
                                      Kind::kGroupedAllgather};
  if (beside_joins || random->OneIn(3)) return random->Of(joinable);
  return static_cast<Kind>(random->Below(kKinds));
}

// As the type's arithmetic does it; nothing here overflows.
double Cut(const Dtype& dtype, double value) { return IsFloat(dtype) ? value : std::trunc(value); }

Wanted Reduced(const Operation& operation, size_t tensor, size_t element) {
  const Dtype& dtype = operation.tensors[tensor].dtype;
  const auto op = static_cast<hvd_op_t>(operation.op);
  double result = 0, size = 0;
  int contributors = 0;
  for (int member = 0; member < operation.set.size(); ++member) {
    if (!operation.takes_part[member]) continue;
    const double input = InputValue(operation, tensor, operation.set.ranks[member], element);
    const double scaled = Cut(dtype, input * operation.prescale);
    result = contributors++ == 0 ? scaled : Combine(dtype, op, result, scaled);
    size += std::abs(scaled);
  }
  if (op == HVD_AVERAGE) result /= operation.flags != 0 ? contributors : operation.set.size();
  result = Rounded(dtype, Cut(dtype, result * operation.postscale));
  const double share = operation.compression != 0 && op == HVD_AVERAGE && IsFloat(dtype)
                           ? 2e-2
                           : Tolerance(dtype, op);
  // NCCL divides before it sums, so what is left of numbers that cancel out is off by theirs.
  const bool divides_first = operation.on_gpu && op == HVD_AVERAGE && IsFloat(dtype);
  return {result,
          share * (divides_first ? size * std::abs(operation.postscale) : std::abs(result))};
}

}  // namespace

int Set::IndexOf(int rank) const {
  const auto at = std::find(ranks.begin(), ranks.end(), rank);
  return at == ranks.end() ? -1 : static_cast<int>(at - ranks.begin());
}

bool Operation::is_group() const { return kind >= Kind::kGroupedAllreduce; }
bool Operation::reduces() const {
  return kind == Kind::kAllreduce || kind == Kind::kReduceScatter ||
         kind == Kind::kGroupedAllreduce || kind == Kind::kGroupedReduceScatter;
}
bool Operation::may_allocate() const {
  return kind != Kind::kAllreduce && kind != Kind::kBroadcast && kind != Kind::kGroupedAllreduce;
}

int64_t Operation::OutputRows(size_t tensor, int member) const {
  const std::vector<int64_t>& rows = tensors[tensor].rows;
  int64_t sum = 0;
  switch (kind) {
    case Kind::kAllgather:
    case Kind::kGroupedAllgather:
      for (size_t m = 0; m < rows.size(); ++m) sum += takes_part[m] ? rows[m] : 0;
      return sum;
    case Kind::kAlltoall:
      for (const std::vector<int64_t>& theirs : splits) sum += theirs[member];
      return sum;
    case Kind::kReduceScatter:
    case Kind::kGroupedReduceScatter:
      return rows[0] / set.size() + (member < rows[0] % set.size() ? 1 : 0);
    default:
      return rows[member];
  }
}

Operation Draw(const DrawOptions& options, const std::vector<Set>& sets, Random* random) {
  Operation operation;
  operation.number = options.number;
  operation.set = random->OneIn(3) ? random->Of(sets) : sets[0];
  operation.takes_part.assign(operation.set.ranks.size(), true);
  operation.kind = DrawKind(options.beside_joins, random);
  // Names come again in later phases, with something else.
  const bool unnamed = options.may_be_unnamed && random->OneIn(4);
  if (!unnamed) operation.name = "layer" + std::to_string(options.number % 24);
  const int64_t tensors = operation.is_group() ? 1 + random->Below(5) : 1;
  const int64_t bytes = DrawBytes(random) / tensors;
  const bool same_types = random->OneIn(2);
  const Dtype& first = random->Of(bench::Dtypes());
  for (int i = 0; i < tensors; ++i) {
    const Dtype& dtype = same_types ? first : random->Of(bench::Dtypes());
    operation.tensors.push_back(DrawTensor(operation, bytes, dtype, random));
  }
  if (operation.reduces()) DrawReduction(options.beside_joins, &operation, random);
  if (operation.kind == Kind::kAlltoall) DrawSplits(&operation, random);
  if (operation.kind == Kind::kBroadcast) operation.root = random->Of(operation.set.ranks);
  return operation;
}

std::string Describe(const Operation& operation) {
  static const char* const kinds[kKinds] = {
      "allreduce", "broadcast",         "allgather",         "reduce-scatter",
      "alltoall",  "grouped allreduce", "grouped allgather", "grouped reduce-scatter"};
  std::string text = "operation " + std::to_string(operation.number) + ", " +
                     kinds[static_cast<int>(operation.kind)] + " '" + operation.name + "' on set " +
                     std::to_string(operation.set.id);
  for (const Tensor& tensor : operation.tensors) {
    text += std::string(" ") + tensor.dtype.name + "[" + std::to_string(tensor.rows[0]) + "," +
            std::to_string(tensor.columns) + "]";
  }
  if (!operation.reduces()) return text;
  return text + " op " + std::to_string(operation.op) + " scales " +
         std::to_string(operation.prescale) + " " + std::to_string(operation.postscale) +
         " compression " + std::to_string(operation.compression);
}

// 1 to 4, in products 1 or 2; negative in places.
double InputValue(const Operation& operation, size_t tensor, int rank, size_t element) {
  const Dtype& dtype = operation.tensors[tensor].dtype;
  uint64_t mixed = (element + 1) * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(rank) * 7919 +
                   static_cast<uint64_t>(operation.number) * 104729 + tensor * 31;
  mixed = (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9u >> 40;
  if (dtype.code == HVD_BOOL) return static_cast<double>(mixed % 2);
  const bool multiplies = operation.reduces() && operation.op == HVD_PRODUCT;
  const auto value = static_cast<double>(1 + mixed % (multiplies ? 2 : 4));
  return !multiplies && IsSigned(dtype) && mixed % 5 == 4 ? -value : value;
}

Wanted OutputValue(const Operation& operation, size_t tensor, int member, size_t element) {
  const Tensor& whole = operation.tensors[tensor];
  const Set& set = operation.set;
  const auto columns = static_cast<size_t>(whole.columns);
  switch (operation.kind) {
    case Kind::kBroadcast:
      return {InputValue(operation, tensor, operation.root, element)};
    case Kind::kAllreduce:
    case Kind::kGroupedAllreduce:
      return Reduced(operation, tensor, element);
    case Kind::kReduceScatter:
    case Kind::kGroupedReduceScatter: {
      size_t before = 0;
      for (int m = 0; m < member; ++m) before += operation.OutputRows(tensor, m) * columns;
      return Reduced(operation, tensor, before + element);
    }
    case Kind::kAllgather:
    case Kind::kGroupedAllgather:
    case Kind::kAlltoall:
      break;
  }
  for (int from = 0; from < set.size(); ++from) {
    const bool splits = operation.kind == Kind::kAlltoall;
    const int64_t rows = splits ? operation.splits[from][member] : whole.rows[from];
    const size_t count = operation.takes_part[from] ? static_cast<size_t>(rows) * columns : 0;
    if (element >= count) {
      element -= count;
      continue;
    }
    for (int to = 0; splits && to < member; ++to) element += operation.splits[from][to] * columns;
    return {InputValue(operation, tensor, set.ranks[from], element)};
  }
  return {};
}

}  // namespace differential
