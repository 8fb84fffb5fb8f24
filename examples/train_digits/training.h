// Data-parallel training: every rank has the whole network and works on its share of each batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "examples/train_digits/digits.h"
#include "examples/train_digits/network.h"
#include "examples/train_digits/sums.h"

namespace digits {

struct TrainingOptions {
  int epochs = 20;
  size_t batch =
      64;  // images of all ranks together, so that the result does not depend on their number
  float learning_rate = 0.3f;
  size_t hidden_units = 64;
  uint64_t seed = 1;
};

struct EpochReport {
  int epoch = 0;             // from 1
  double loss = 0;           // mean over the training images, each as its batch saw it
  double test_accuracy = 0;  // after the epoch, 0 to 1
  double samples_per_second = 0;
};

// Trains; all ranks of the hvd session call it together with the same options and data, and `sums`
// that the gradients go through. `report` is called on every rank after each epoch with the same
// figures (the speed is the rank's own).
void Train(const Digits& digits, const TrainingOptions& options, Sums* sums,
           const std::function<void(const EpochReport&)>& report);

}  // namespace digits
