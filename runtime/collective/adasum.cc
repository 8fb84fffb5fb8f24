// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/adasum.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/collective/kernels/float_rules.h"
#include "runtime/collective/narrow.h"
#include "runtime/collective/slices.h"

namespace hvd::rt {
namespace {

// The products of two vectors, over one tensor: all that is needed to combine them.
struct Products {
  double aa = 0, bb = 0, ab = 0;
};

// A vector that is (almost) nothing is added as it is.
double Coefficient(double ab, double square) {
  return square < std::numeric_limits<double>::min() ? 1 : 1 - ab / square / 2;
}

// Work: float or double. One object a call.
template <class Work>
class AdasumRun {
 public:
  AdasumRun(const AdasumArgs& args, Collectives* collectives)
      : args_(args), collectives_(*collectives), ranks_(collectives->size()) {
    size_t total = 0;
    for (const ReducePart& part : args.parts) {
      total += part.count;
      ends_.push_back(total);
    }
    bounds_ = EvenSlices(total, ranks_);
    begin_ = bounds_[collectives->rank()];
    length_ = bounds_[collectives->rank() + 1] - begin_;
  }

  absl::Status Run() {
    if (absl::Status got = GatherSlices(); !got.ok()) return got;
    for (int vectors = ranks_; vectors > 1; vectors = (vectors + 1) / 2) {
      if (absl::Status combined = CombinePairs(vectors); !combined.ok()) return combined;
    }
    return GiveOut();
  }

 private:
  static constexpr hvd_dtype_t kWork = sizeof(Work) == 8 ? HVD_FLOAT64 : HVD_FLOAT32;

  Work* vector(int i) { return slices_.data() + static_cast<size_t>(i) * length_; }

  // Everyone's tensors one after the other, scaled, as Work.
  void Pack(Work* packed) const {
    for (const ReducePart& part : args_.parts) {
      if (args_.dtype == kWork) {
        std::copy_n(static_cast<const Work*>(part.input), part.count, packed);
      } else {
        Widen({kWork, args_.dtype}, static_cast<const uint16_t*>(part.input), packed, part.count);
      }
      packed += part.count;
    }
  }

  absl::Status GatherSlices() {
    std::vector<Work> mine(bounds_.back());
    Pack(mine.data());
    if (args_.prescale != 1) {
      for (Work& element : mine) element = static_cast<Work>(element * args_.prescale);
    }
    slices_.resize(length_ * static_cast<size_t>(ranks_));
    std::vector<size_t> send(ranks_);
    for (int r = 0; r < ranks_; ++r) send[r] = (bounds_[r + 1] - bounds_[r]) * sizeof(Work);
    const std::vector<size_t> receive(ranks_, length_ * sizeof(Work));
    if (ranks_ == 1) {
      slices_ = std::move(mine);
      return absl::OkStatus();
    }
    return collectives_.Alltoall({mine.data(), slices_.data(), send, receive});
  }

  // Where tensor t lies in this rank's slice.
  std::pair<size_t, size_t> PlaceOf(size_t t) const {
    const size_t first = t == 0 ? 0 : ends_[t - 1];
    const auto inside = [this](size_t at) {
      return std::clamp(at, begin_, begin_ + length_) - begin_;
    };
    return {inside(first), inside(ends_[t])};
  }

  Products Multiply(const Work* a, const Work* b, size_t t) const {
    const auto [from, to] = PlaceOf(t);
    Products sums;
    for (size_t i = from; i < to; ++i) {
      const double x = a[i], y = b[i];
      sums.aa += x * x;
      sums.bb += y * y;
      sums.ab += x * y;
    }
    return sums;
  }

  // The first `vectors` vectors become half as many.
  absl::Status CombinePairs(int vectors) {
    const int pairs = vectors / 2;
    const size_t tensors = ends_.size();
    std::vector<Products> products(static_cast<size_t>(pairs) * tensors);
    for (int p = 0; p < pairs; ++p) {
      for (size_t t = 0; t < tensors; ++t) {
        products[p * tensors + t] = Multiply(vector(2 * p), vector(2 * p + 1), t);
      }
    }
    ReduceArgs sum;
    sum.input = sum.output = products.data();
    sum.count = products.size() * 3;
    sum.dtype = HVD_FLOAT64;
    sum.op = HVD_SUM;
    if (absl::Status summed = collectives_.Allreduce(sum); !summed.ok()) return summed;
    for (int p = 0; p < pairs; ++p) {
      for (size_t t = 0; t < tensors; ++t) Combine(p, t, products[p * tensors + t]);
    }
    if (vectors % 2 != 0) std::copy_n(vector(vectors - 1), length_, vector(pairs));
    return absl::OkStatus();
  }

  // Vectors 2p and 2p + 1 become vector p.
  void Combine(int p, size_t t, const Products& sums) {
    const double of_a = Coefficient(sums.ab, sums.aa), of_b = Coefficient(sums.ab, sums.bb);
    const Work* a = vector(2 * p);
    const Work* b = vector(2 * p + 1);
    Work* result = vector(p);
    const auto [from, to] = PlaceOf(t);
    for (size_t i = from; i < to; ++i) {
      result[i] = static_cast<Work>(of_a * a[i] + of_b * b[i]);
    }
  }

  absl::Status GiveOut() {
    if (args_.postscale != 1) {
      for (size_t i = 0; i < length_; ++i) {
        slices_[i] = static_cast<Work>(slices_[i] * args_.postscale);
      }
    }
    std::vector<Work> all(bounds_.back());
    std::vector<size_t> bytes(ranks_);
    for (int r = 0; r < ranks_; ++r) bytes[r] = (bounds_[r + 1] - bounds_[r]) * sizeof(Work);
    const absl::Status gathered = collectives_.Allgather({slices_.data(), all.data(), bytes});
    if (!gathered.ok()) return gathered;
    const Work* at = all.data();
    for (const ReducePart& part : args_.parts) {
      if (args_.dtype == kWork) {
        std::copy_n(at, part.count, static_cast<Work*>(part.output));
      } else {
        Narrow({kWork, args_.dtype}, at, static_cast<uint16_t*>(part.output), part.count);
      }
      at += part.count;
    }
    return absl::OkStatus();
  }

  const AdasumArgs& args_;
  Collectives& collectives_;
  const int ranks_;
  std::vector<size_t> ends_;    // of the tensors, one after the other
  std::vector<size_t> bounds_;  // of the ranks' slices
  size_t begin_ = 0, length_ = 0;
  std::vector<Work> slices_;  // this rank's slice of each rank's vector
};

}  // namespace

absl::Status Adasum(const AdasumArgs& args, Collectives* collectives) {
  const FloatRules rules;
  if (args.dtype == HVD_FLOAT64) return AdasumRun<double>(args, collectives).Run();
  return AdasumRun<float>(args, collectives).Run();
}

}  // namespace hvd::rt
