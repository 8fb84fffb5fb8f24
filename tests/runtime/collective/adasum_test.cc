// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/adasum.h"

#include <catch2/catch.hpp>

#include "tests/runtime/collective/plain_world.h"

namespace hvd::rt::test {
namespace {

using Vector = std::vector<double>;

double Dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Vector Combine(const Vector& a, const Vector& b) {
  const double aa = Dot(a, a), bb = Dot(b, b), ab = Dot(a, b);
  const double of_a = aa == 0 ? 1 : 1 - ab / (2 * aa), of_b = bb == 0 ? 1 : 1 - ab / (2 * bb);
  Vector sum;
  for (size_t i = 0; i < a.size(); ++i) sum.push_back(of_a * a[i] + of_b * b[i]);
  return sum;
}

Vector Reference(std::vector<Vector> vectors) {
  while (vectors.size() > 1) {
    std::vector<Vector> next;
    for (size_t i = 0; i + 1 < vectors.size(); i += 2) {
      next.push_back(Combine(vectors[i], vectors[i + 1]));
    }
    if (vectors.size() % 2 != 0) next.push_back(vectors.back());
    vectors = std::move(next);
  }
  return vectors[0];
}

double Element(int rank, size_t tensor, size_t i) {
  if (rank == 3 && tensor == 1) return 0;  // a rank without a gradient of it
  return std::sin(1.0 + rank * 0.7 + static_cast<double>(tensor * 13 + i)) + (tensor == 2 ? 2 : 0);
}

// Each rank's tensors of these sizes, as their type holds them.
struct Tensors {
  hvd_dtype_t dtype;
  std::vector<size_t> sizes;
  std::vector<std::vector<unsigned char>> bytes;
  std::vector<ReducePart> parts;

  Tensors(hvd_dtype_t dtype, std::vector<size_t> counts, int rank)
      : dtype(dtype), sizes(std::move(counts)) {
    for (size_t t = 0; t < sizes.size(); ++t) {
      auto& room = bytes.emplace_back(sizes[t] * DtypeBytes(dtype) + 1);
      for (size_t i = 0; i < sizes[t]; ++i) {
        Encode(dtype, Element(rank, t, i), &room[i * DtypeBytes(dtype)]);
      }
    }
    for (size_t t = 0; t < sizes.size(); ++t) {
      ReducePart part;
      part.input = part.output = bytes[t].data();
      part.count = sizes[t];
      parts.push_back(part);
    }
  }
  Vector Values(size_t t) const {
    Vector values;
    for (size_t i = 0; i < sizes[t]; ++i) {
      values.push_back(Decode(dtype, &bytes[t][i * DtypeBytes(dtype)]));
    }
    return values;
  }
};

double Tolerance(hvd_dtype_t dtype) {
  if (dtype == HVD_FLOAT64) return 1e-13;
  if (dtype == HVD_FLOAT32) return 2e-6;
  return dtype == HVD_FLOAT16 ? 2e-3 : 2e-2;
}

TEST_CASE("Adasum is the plain reference's, for any number of ranks and each tensor by itself") {
  const std::vector<size_t> sizes = {5, 1, 100, 0, 33};
  for (const hvd_dtype_t dtype : {HVD_FLOAT64, HVD_FLOAT32, HVD_FLOAT16, HVD_BFLOAT16}) {
    for (int ranks = 1; ranks <= 7; ++ranks) {
      PlainWorld world(ranks);
      CHECK(world.Run([&](Collectives& collectives) -> std::string {
        Tensors mine(dtype, sizes, collectives.rank());
        const absl::Status done = Adasum({mine.parts, dtype, 1, 1}, &collectives);
        if (!done.ok()) return done.ToString();
        for (size_t t = 0; t < sizes.size(); ++t) {
          std::vector<Vector> given;
          for (int r = 0; r < ranks; ++r) given.push_back(Tensors(dtype, sizes, r).Values(t));
          const Vector wanted = Reference(given), got = mine.Values(t);
          for (size_t i = 0; i < got.size(); ++i) {
            if (std::abs(got[i] - wanted[i]) > Tolerance(dtype) * (1 + std::abs(wanted[i]))) {
              return "tensor " + std::to_string(t) + " element " + std::to_string(i) + " is " +
                     std::to_string(got[i]) + ", must be " + std::to_string(wanted[i]);
            }
          }
        }
        return "";
      }) == "");
    }
  }
}

TEST_CASE("parallel gradients are averaged, orthogonal ones added, scales applied") {
  PlainWorld world(4);
  CHECK(world.Run([&](Collectives& collectives) -> std::string {
    std::vector<float> same = {3, 4}, apart(4, 0.0f);
    apart[static_cast<size_t>(collectives.rank())] = 1;
    std::vector<ReducePart> parts(2);
    parts[0] = {same.data(), same.data(), 2, {}, {}};
    parts[1] = {apart.data(), apart.data(), 4, {}, {}};
    const absl::Status done = Adasum({parts, HVD_FLOAT32, 2, 0.25}, &collectives);
    if (!done.ok()) return done.ToString();
    if (same != std::vector<float>{1.5, 2}) return "parallel ones are not averaged";
    if (apart != std::vector<float>(4, 0.5f)) return "orthogonal ones are not added";
    return "";
  }) == "");
}

}  // namespace
}  // namespace hvd::rt::test
