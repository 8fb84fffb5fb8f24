// SPDX-License-Identifier: Apache-2.0
// A network written out plainly: 64 pixels → hidden (ReLU) → 10 classes (softmax, cross-entropy).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "examples/train_digits/digits.h"

namespace digits {

// A dense layer, or the gradient of one.
struct Layer {
  Layer(size_t inputs, size_t outputs)
      : inputs(inputs), outputs(outputs), weight(inputs * outputs), bias(outputs) {}

  size_t inputs;
  size_t outputs;
  std::vector<float> weight;  // [outputs][inputs]
  std::vector<float> bias;    // [outputs]
};

struct Network {
  explicit Network(size_t hidden_units)
      : hidden(kPixels, hidden_units), output(hidden_units, kClasses) {}

  Layer hidden;
  Layer output;
};

void FillRandomly(Network* network, uint64_t seed);

// The class that the network thinks the image shows.
int Classify(const Network& network, const Image& image);

// Adds up the gradient of the loss over `images` and calls `ready` with each layer of it as soon as
// that layer is complete: the output layer first, while the hidden one is still to be done.
// Returns the sum of the losses.
double AddGradients(const Network& network, const std::vector<const Image*>& images,
                    Network* gradient, const std::function<void(Layer*)>& ready);

// network -= step * gradient
void Descend(Network* network, const Network& gradient, float step);

}  // namespace digits
