// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/message/wide_reduction.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "runtime/collective/kernels/float8.h"
#include "runtime/collective/kernels/float_rules.h"
#include "runtime/collective/kernels/int_average.h"
#include "runtime/collective/message/pipeline.h"
#include "runtime/collective/slices.h"
#include "runtime/collective/tensor_view.h"
#include "runtime/collective/wire_scale.h"

namespace hvd::rt {
namespace {

// Elements that are widened at a time: a few MB of what travels.
constexpr size_t kPiece = size_t{1} << 20;

// An integer as it travels: a wider one. One of 64 bits is two, its upper and its lower half, for
// there is nothing wider to sum in.
template <class T>
struct Travelling {
  using Wide = typename SumOfInts<T>::Type;
  static constexpr size_t kParts = 1;
  static void Put(T value, Wide* to) { *to = value; }
  static Wide Take(const Wide* from) { return *from; }
};
template <class T>
struct TravellingHalves {
  using Wide = int64_t;
  static constexpr size_t kParts = 2;
  static void Put(T value, Wide* to) {
    to[0] = static_cast<int64_t>(value >> 32);
    to[1] = static_cast<int64_t>(value & 0xffffffff);
  }
  static Int128 Take(const Wide* from) { return Int128{from[0]} * (int64_t{1} << 32) + from[1]; }
};
template <>
struct Travelling<int64_t> : TravellingHalves<int64_t> {};
template <>
struct Travelling<uint64_t> : TravellingHalves<uint64_t> {};

struct Scales {
  double prescale;
  double postscale;
  int divisor;
};

template <class T>
void WidenInts(const Scales& scales, const void* from, void* to, size_t count) {
  using As = Travelling<T>;
  const auto* source = static_cast<const T*>(from);
  auto* wide = static_cast<typename As::Wide*>(to);
  for (size_t i = 0; i < count; ++i) {
    T value;
    memcpy(&value, source + i, sizeof(value));
    if (scales.prescale != 1) value = TruncateAs<T>(static_cast<double>(value) * scales.prescale);
    As::Put(value, wide + i * As::kParts);
  }
}

template <class T>
void AverageInts(const Scales& scales, const void* from, void* to, size_t count) {
  using As = Travelling<T>;
  const auto* wide = static_cast<const typename As::Wide*>(from);
  auto* result = static_cast<T*>(to);
  for (size_t i = 0; i < count; ++i) {
    const T value = AverageOf<T>(As::Take(wide + i * As::kParts), scales.postscale, scales.divisor);
    memcpy(result + i, &value, sizeof(value));
  }
}

// float8 travels as float64, in which its sums are exact: so they do not depend on who adds what
// first. They are scaled at the end.
template <class Format, hvd_op_t kOp>
void WidenFloat8(const Scales& scales, const void* from, void* to, size_t count) {
  const auto* source = static_cast<const uint8_t*>(from);
  auto* wide = static_cast<double*>(to);
  const double scale = kOp == HVD_PRODUCT ? scales.prescale : 1;
  for (size_t i = 0; i < count; ++i) wide[i] = Float8<Format>::Decode(source[i]) * scale;
}
template <class Format, hvd_op_t kOp>
void NarrowFloat8(const Scales& scales, const void* from, void* to, size_t count) {
  const auto* wide = static_cast<const double*>(from);
  auto* result = static_cast<uint8_t*>(to);
  const double before = kOp == HVD_PRODUCT ? 1 : scales.prescale;
  for (size_t i = 0; i < count; ++i) {
    result[i] = Float8<Format>::Encode(wide[i] * before / scales.divisor * scales.postscale);
  }
}

// How a type travels.
struct Way {
  hvd_dtype_t dtype;  // of what travels
  size_t parts;       // of these, an element
  hvd_op_t op;        // that they are combined with
  using Loop = void (*)(const Scales& scales, const void* from, void* to, size_t count);
  Loop widen;
  Loop narrow;

  size_t bytes() const { return parts * DtypeBytes(dtype); }
};

template <class T>
Way AverageOfInts() {
  using As = Travelling<T>;
  const hvd_dtype_t sums = sizeof(typename As::Wide) == 4 ? HVD_INT32 : HVD_INT64;
  return {sums, As::kParts, HVD_SUM, WidenInts<T>, AverageInts<T>};
}

template <class Format>
Way WayOfFloat8(hvd_op_t op) {
  if (op == HVD_PRODUCT) {
    return {HVD_FLOAT64, 1, op, WidenFloat8<Format, HVD_PRODUCT>,
            NarrowFloat8<Format, HVD_PRODUCT>};
  }
  return {HVD_FLOAT64, 1, HVD_SUM, WidenFloat8<Format, HVD_SUM>, NarrowFloat8<Format, HVD_SUM>};
}

Way WayOf(hvd_dtype_t dtype, hvd_op_t op) {
  switch (dtype) {
    case HVD_UINT8:
      return AverageOfInts<uint8_t>();
    case HVD_INT8:
      return AverageOfInts<int8_t>();
    case HVD_UINT16:
      return AverageOfInts<uint16_t>();
    case HVD_INT16:
      return AverageOfInts<int16_t>();
    case HVD_UINT32:
      return AverageOfInts<uint32_t>();
    case HVD_INT32:
      return AverageOfInts<int32_t>();
    case HVD_UINT64:
      return AverageOfInts<uint64_t>();
    case HVD_FLOAT8_E4M3FN:
      return WayOfFloat8<E4m3fn>(op);
    case HVD_FLOAT8_E5M2:
      return WayOfFloat8<E5m2>(op);
    default:
      return AverageOfInts<int64_t>();
  }
}

template <class Args>
Scales ScalesOf(const Args& args, const Collectives& ranks) {
  return {args.prescale, args.postscale, DivisorOf(args, ranks.size())};
}

// One reduce-scatter's, over and over with the same stretch of every rank's part.
class ScatterRun {
 public:
  ScatterRun(const ReduceScatterArgs& args, Collectives* ranks)
      : args_(args),
        ranks_(*ranks),
        way_(WayOf(args.dtype, args.op)),
        scales_(ScalesOf(args, *ranks)),
        width_(DtypeBytes(args.dtype)),
        counts_(args.count_by_rank.size()) {}

  absl::Status Run() {
    const Chunks chunks(SumAndLargest(args_.count_by_rank).second,
                        std::max<size_t>(1, kPiece / counts_.size()));
    const size_t most = chunks.largest() * counts_.size();
    wide_.reset(new std::byte[(most + chunks.largest()) * way_.bytes()]);
    for (size_t k = 0; k < chunks.size(); ++k) {
      if (absl::Status done = RunStretch(chunks.begin(k), chunks.begin(k + 1)); !done.ok()) {
        return done;
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status RunStretch(size_t begin, size_t end) {
    const auto* input = static_cast<const std::byte*>(args_.input);
    std::byte* to = wide_.get();
    for (size_t r = 0; r < counts_.size(); ++r) {
      const size_t count = args_.count_by_rank[r], first = std::min(count, begin);
      const size_t here = std::min(count, end) - first;
      Widen(input + first * width_, to, here);
      counts_[r] = here * way_.parts;
      to += here * way_.bytes();
      input += count * width_;
    }
    ReduceScatterArgs sum;
    sum.input = wide_.get();
    sum.output = to;
    sum.count_by_rank = counts_;
    sum.dtype = way_.dtype;
    sum.op = way_.op;
    if (absl::Status summed = ranks_.ReduceScatter(sum); !summed.ok()) return summed;
    const size_t mine = args_.count_by_rank[ranks_.rank()];
    const FloatRules rules;
    way_.narrow(scales_, to, static_cast<std::byte*>(args_.output) + std::min(mine, begin) * width_,
                counts_[ranks_.rank()] / way_.parts);
    return absl::OkStatus();
  }
  void Widen(const std::byte* from, std::byte* to, size_t count) const {
    const FloatRules rules;
    way_.widen(scales_, from, to, count);
  }

  const ReduceScatterArgs& args_;
  Collectives& ranks_;
  const Way way_;
  const Scales scales_;
  const size_t width_;
  std::vector<size_t> counts_;         // of a stretch, by rank, as they travel
  std::unique_ptr<std::byte[]> wide_;  // what all get, then what this rank gets
};

}  // namespace

absl::Status ReduceWide(const ReduceArgs& args, Collectives* ranks) {
  const TensorView view(args);
  const Way way = WayOf(args.dtype, args.op);
  const Scales scales = ScalesOf(args, *ranks);
  const std::unique_ptr<std::byte[]> wide(
      new std::byte[std::min(kPiece, view.count()) * way.bytes()]);
  const auto at = [&](const TensorView::Piece& piece) {
    return wide.get() + piece.at / view.element_bytes() * way.bytes();
  };
  for (size_t begin = 0; begin < view.count(); begin += kPiece) {
    const size_t count = std::min(kPiece, view.count() - begin);
    view.ForEachPiece(begin, count, [&](const TensorView::Piece& piece) {
      const FloatRules rules;
      way.widen(scales, piece.input(), at(piece), piece.count);
    });
    ReduceArgs sum;
    sum.input = sum.output = wide.get();
    sum.count = count * way.parts;
    sum.dtype = way.dtype;
    sum.op = way.op;
    if (absl::Status summed = ranks->Allreduce(sum); !summed.ok()) return summed;
    view.ForEachPiece(begin, count, [&](const TensorView::Piece& piece) {
      const FloatRules rules;
      way.narrow(scales, at(piece), piece.output(), piece.count);
    });
  }
  return absl::OkStatus();
}

absl::Status ReduceWide(const ReduceScatterArgs& args, Collectives* ranks) {
  return ScatterRun(args, ranks).Run();
}

}  // namespace hvd::rt
