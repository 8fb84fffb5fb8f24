// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/tuning/autotune.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <random>

namespace hvd::rt {
namespace {

using Catch::Matchers::Contains;
using Surface = std::function<double(const TunePoint&)>;

const TunePoint kStart = PointOf(EngineConfig());

int64_t& At(TunePoint& point, Knob knob) { return point[static_cast<size_t>(knob)]; }
double At(const TunePoint& point, Knob knob) {
  return static_cast<double>(point[static_cast<size_t>(knob)]);
}

// The search's result on a surface.
Autotune Run(const Surface& surface, TuneLimits limits = {}) {
  Autotune search(kStart, limits);
  while (!search.done()) search.Score(surface(search.candidate()));
  return search;
}

// Falls by a tenth with each doubling away from `best`.
double Hill(double value, double best) {
  return std::pow(0.9, std::abs(std::log2((value + 1) / (best + 1))));
}

// Best at fusion 256M and wait 200.
double Hills(const TunePoint& point) {
  return 1000 * Hill(At(point, Knob::kFusionThreshold), 256 << 20) *
         Hill(At(point, Knob::kBatchWait), 200);
}

TEST_CASE("a search finds the top of a smooth surface within its samples") {
  const Autotune search = Run(Hills);
  CHECK(At(search.candidate(), Knob::kFusionThreshold) == 256 << 20);
  CHECK(At(search.candidate(), Knob::kBatchWait) == 200);
  CHECK(At(search.candidate(), Knob::kOneShot) == At(kStart, Knob::kOneShot));
  CHECK(search.samples().size() <= 3 + 40);
}

TEST_CASE("the first samples are thrown away, whatever they say") {
  int number = 0;
  const Autotune search =
      Run([&number](const TunePoint& point) { return ++number <= 3 ? 1e9 : Hills(point); });
  CHECK(At(search.candidate(), Knob::kFusionThreshold) == 256 << 20);
  CHECK(std::string(search.samples()[2].phase) == "warmup");
  CHECK(std::string(search.samples()[3].phase) == "search");
  CHECK(search.samples()[3].point == kStart);
}

TEST_CASE("nothing is gained on a flat surface, noise or not, and the defaults stay") {
  CHECK(Run([](const TunePoint&) { return 5.0; }).candidate() == kStart);
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> noise(0.995, 1.005);
    CHECK(Run([&](const TunePoint&) { return 5.0 * noise(random); }).candidate() == kStart);
  }
}

TEST_CASE("one lucky sample does not win against the defaults") {
  int number = 0;
  const Autotune search = Run([&number](const TunePoint&) { return ++number == 5 ? 100.0 : 5.0; });
  CHECK(search.candidate() == kStart);
  CHECK(std::string(search.samples().back().phase) == "confirm");
}

TEST_CASE("never more samples than allowed") {
  for (int samples = 6; samples < 60; ++samples) {
    double score = 1;  // ever better: there is always a reason to go on
    const auto rising = [&score](const TunePoint&) { return score *= 2; };
    CHECK(Run(rising, {2, samples, true}).samples().size() <= static_cast<size_t>(2 + samples));
  }
}

TEST_CASE("settings between hosts are searched where there are several") {
  const auto ring = [](const TunePoint& point) { return Hill(At(point, Knob::kRing), 64 << 10); };
  CHECK(At(Run(ring).candidate(), Knob::kRing) == At(kStart, Knob::kRing));
  CHECK(At(Run(ring, {0, 40, true}).candidate(), Knob::kRing) == 64 << 10);
}

TEST_CASE("a start beside the grid is part of it") {
  TunePoint odd = kStart;
  At(odd, Knob::kFusionThreshold) = 5000000;
  Autotune search(odd, {0, 40, false});
  while (!search.done()) {
    search.Score(Hill(At(search.candidate(), Knob::kFusionThreshold), 5000000));
  }
  CHECK(search.candidate() == odd);
}

TEST_CASE("a result is read as it was written, and nothing else is one") {
  TunePoint point = kStart;
  At(point, Knob::kFusionThreshold) = 3 << 20;
  At(point, Knob::kBatchWait) = 123;
  const auto read = ParseResult(FormatResult(point), kStart);
  REQUIRE(read.ok());
  CHECK(*read == point);
  CHECK_THAT(FormatResult(point), Contains("HVD_FUSION_THRESHOLD=3M\nHVD_BATCH_WAIT_US=123us\n"));
  CHECK_FALSE(ParseResult("", kStart).ok());
  CHECK_FALSE(ParseResult("#!/bin/sh\n", kStart).ok());
  CHECK_FALSE(ParseResult("HVD_FUSION_THRESHOLD=much\n", kStart).ok());
}

TEST_CASE("the log has a column a setting") {
  const std::string head = CsvHead(), line = CsvLine(7, {kStart, 1.5, "search"});
  CHECK(std::count(head.begin(), head.end(), ',') == std::count(line.begin(), line.end(), ','));
  CHECK(head.substr(0, 28) == "sample,HVD_FUSION_THRESHOLD,");
  CHECK(line.substr(0, 11) == "7,67108864,");
}

}  // namespace
}  // namespace hvd::rt
