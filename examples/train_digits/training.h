// SPDX-License-Identifier: Apache-2.0
// Data-parallel training: every rank has the whole network and works on its share of each batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
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
  bool elastic = false;   // members may come and go: their state is committed
  int commit_every = 10;  // batches
};

struct EpochReport {
  int epoch = 0;             // from 1
  double loss = 0;           // mean over the training images, each as its batch saw it
  double test_accuracy = 0;  // after the epoch, 0 to 1
  double samples_per_second = 0;
};

struct TrainingResult {
  bool finished = true;  // false: this rank was removed from the job before the end
  std::vector<double> losses;
  double test_accuracy = 0;
};

// Makes what the gradients go through, once this rank is in an epoch of the job.
using SumsFactory = std::function<std::unique_ptr<Sums>()>;

// Trains; all ranks of the hvd session call it together with the same options and data. `report` is
// called on every rank after each epoch with the same figures (the speed is the rank's own); in an
// elastic job again for an epoch whose end was not committed when a member died.
TrainingResult Train(const Digits& digits, const TrainingOptions& options,
                     const SumsFactory& make_sums,
                     const std::function<void(const EpochReport&)>& report);

}  // namespace digits
