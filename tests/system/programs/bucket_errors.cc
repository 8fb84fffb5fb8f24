// SPDX-License-Identifier: Apache-2.0
// Buckets that one rank has made otherwise than the rest, with each rank in turn as that one: what
// every rank is told, and that hvd goes on working. With ranks that have joined, too. Prints
// "all buckets right" on each rank.
#include <cstring>

#include "tests/system/programs/checks.h"

namespace {

struct Made {
  std::vector<size_t> counts;
  size_t chunk_bytes = 0;
};

// A step whose sums must be right; or the text of what it threw.
std::string Step(hvd::Gradients<float>* gradients, const std::vector<size_t>& counts) {
  try {
    for (size_t i = 0; i < counts.size(); ++i) {
      std::fill_n((*gradients)[i], counts[i], static_cast<float>(i + 1));
      gradients->ready(i);
    }
    gradients->wait();
  } catch (const hvd::Error& error) {
    if (error.code() != HVD_ERR_MISMATCH) Fail(std::string("no mismatch: ") + error.what());
    return error.what();
  }
  for (size_t i = 0; i < counts.size(); ++i) {
    for (size_t k = 0; k < counts[i]; ++k) {
      if ((*gradients)[i][k] != static_cast<float>(hvd::size() * static_cast<int>(i + 1))) {
        Fail("a wrong sum, and no error");
      }
    }
  }
  return "";
}

hvd::GradientOptions Named(const char* name, size_t chunk_bytes = 0) {
  hvd::GradientOptions options;
  options.name = name;
  options.op = hvd::Op::kSum;
  options.chunk_bytes = chunk_bytes;
  return options;
}

// `said`: a part of the text that every rank gets.
void CheckDifference(const Made& common, const Made& odd, int odd_rank, const std::string& said) {
  const Made& mine = hvd::rank() == odd_rank ? odd : common;
  hvd::Gradients<float> gradients(mine.counts, Named("layers", mine.chunk_bytes));
  for (int step = 0; step < 2; ++step) {  // the second is no better
    const std::string text = Step(&gradients, mine.counts);
    if (text.find(said) == std::string::npos || text.find("'layers'") == std::string::npos) {
      Fail("no '" + said + "' in: " + text);
    }
  }
  // Right again under the same name.
  hvd::Gradients<float> same(common.counts, Named("layers", common.chunk_bytes));
  for (int step = 0; step < 3; ++step) {
    if (const std::string text = Step(&same, common.counts); !text.empty()) Fail(text);
  }
}

// Returns the words for what rank 0 has and what the odd one has; the odd one may be rank 0.
std::string Said(int odd_rank, const std::string& unit, const char* common, const char* odd) {
  const std::string other = std::to_string(odd_rank == 0 ? 1 : odd_rank);
  return "rank 0 has " + std::string(odd_rank == 0 ? odd : common) + unit + ", rank " + other +
         " has " + (odd_rank == 0 ? common : odd);
}

void CheckDifferences(int odd) {
  CheckDifference({{100, 200}}, {{200, 100}}, odd,
                  "tensor 0: " + Said(odd, " elements", "100", "200"));
  CheckDifference({{10}}, {{11}}, odd, "tensor 0: " + Said(odd, " elements", "10", "11"));
  CheckDifference({{10}}, {{110}}, odd, "tensor 0: " + Said(odd, " elements", "10", "110"));
  CheckDifference({{10, 20}}, {{10, 20, 30}}, odd, Said(odd, " tensors", "2", "3"));
  // Chunks that only some have.
  const std::vector<size_t> four(4, 16);
  CheckDifference({four, 64}, {four, 256}, odd, Said(odd, " chunks", "4", "1"));
  CheckDifference({four, 256}, {four, 64}, odd, Said(odd, " chunks", "1", "4"));
  CheckDifference({four, 64}, {{}, 64}, odd, Said(odd, " tensors", "4", "0"));
}

// A rank may use its bucket for the first time after it has joined once.
void CheckJoined(int early) {
  const std::vector<size_t> counts = {5, 7};
  hvd::Gradients<float> gradients(counts, Named("joined"));
  for (int step = 0; hvd::rank() != early && step < 2; ++step) {
    for (size_t i = 0; i < counts.size(); ++i) gradients.ready(i);
    gradients.wait();
  }
  Must(hvd_join(nullptr), "join");
  for (int step = 0; step < 2; ++step) {
    if (const std::string text = Step(&gradients, counts); !text.empty()) Fail(text);
  }
}

}  // namespace

int main() {
  try {
    const hvd::Session session;
    for (int odd = 0; odd < hvd::size(); ++odd) CheckDifferences(odd);
    for (int early = 0; early < hvd::size(); ++early) CheckJoined(early);
    std::printf("all buckets right on rank %d\n", hvd::rank());
  } catch (const hvd::Error& error) {
    std::fprintf(stderr, "rank %d: buckets: %s\n", hvd::rank(), error.what());
    return 1;
  }
  return 0;
}
