// SPDX-License-Identifier: Apache-2.0
#include "examples/train_digits/network.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace digits {
namespace {

using Vector = std::vector<float>;

// Uniform with the variance that keeps signals alike from layer to layer (He).
void FillLayer(Layer* layer, std::mt19937_64* random) {
  const double bound = std::sqrt(6.0 / static_cast<double>(layer->inputs));
  for (float& weight : layer->weight) {
    const double unit = static_cast<double>((*random)() >> 11) * 0x1p-53;  // 0 to 1
    weight = static_cast<float>((2 * unit - 1) * bound);
  }
  std::fill(layer->bias.begin(), layer->bias.end(), 0.0f);
}

// y = weight · x + bias
void Apply(const Layer& layer, const float* x, Vector* y) {
  for (size_t o = 0; o < layer.outputs; ++o) {
    const float* const row = &layer.weight[o * layer.inputs];
    float sum = layer.bias[o];
    for (size_t i = 0; i < layer.inputs; ++i) sum += row[i] * x[i];
    (*y)[o] = sum;
  }
}

// gradient += dy ⊗ x
void AddOuter(const Vector& dy, const float* x, Layer* gradient) {
  for (size_t o = 0; o < gradient->outputs; ++o) {
    float* const row = &gradient->weight[o * gradient->inputs];
    for (size_t i = 0; i < gradient->inputs; ++i) row[i] += dy[o] * x[i];
    gradient->bias[o] += dy[o];
  }
}

void Relu(Vector* x) {
  for (float& value : *x) value = std::max(value, 0.0f);
}

// Turns scores into the gradient of the loss with respect to them; returns the loss.
double SoftmaxCrossEntropy(int label, Vector* scores) {
  const float top = *std::max_element(scores->begin(), scores->end());
  float sum = 0;
  for (float& score : *scores) sum += (score = std::exp(score - top));
  for (float& score : *scores) score /= sum;
  const double loss = -std::log(std::max((*scores)[label], 1e-30f));
  (*scores)[label] -= 1;
  return loss;
}

// dhidden = weightᵀ · dscores where the hidden unit was on, else 0
Vector BackThrough(const Layer& output, const Vector& dscores, const Vector& hidden) {
  Vector dhidden(hidden.size());
  for (size_t o = 0; o < output.outputs; ++o) {
    const float* const row = &output.weight[o * output.inputs];
    for (size_t i = 0; i < output.inputs; ++i) dhidden[i] += row[i] * dscores[o];
  }
  for (size_t i = 0; i < hidden.size(); ++i) {
    if (hidden[i] <= 0) dhidden[i] = 0;
  }
  return dhidden;
}

void Clear(Layer* layer) {
  std::fill(layer->weight.begin(), layer->weight.end(), 0.0f);
  std::fill(layer->bias.begin(), layer->bias.end(), 0.0f);
}

void DescendLayer(Layer* layer, const Layer& gradient, float step) {
  for (size_t i = 0; i < layer->weight.size(); ++i) layer->weight[i] -= step * gradient.weight[i];
  for (size_t i = 0; i < layer->bias.size(); ++i) layer->bias[i] -= step * gradient.bias[i];
}

}  // namespace

void FillRandomly(Network* network, uint64_t seed) {
  std::mt19937_64 random(seed);
  FillLayer(&network->hidden, &random);
  FillLayer(&network->output, &random);
}

int Classify(const Network& network, const Image& image) {
  Vector hidden(network.hidden.outputs), scores(network.output.outputs);
  Apply(network.hidden, image.pixels, &hidden);
  Relu(&hidden);
  Apply(network.output, hidden.data(), &scores);
  return static_cast<int>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

double AddGradients(const Network& network, const std::vector<const Image*>& images,
                    Network* gradient, const std::function<void(Layer*)>& ready) {
  double loss = 0;
  std::vector<Vector> hidden(images.size(), Vector(network.hidden.outputs));
  std::vector<Vector> dscores(images.size(), Vector(network.output.outputs));

  Clear(&gradient->output);
  for (size_t n = 0; n < images.size(); ++n) {
    Apply(network.hidden, images[n]->pixels, &hidden[n]);
    Relu(&hidden[n]);
    Apply(network.output, hidden[n].data(), &dscores[n]);
    loss += SoftmaxCrossEntropy(images[n]->label, &dscores[n]);
    AddOuter(dscores[n], hidden[n].data(), &gradient->output);
  }
  ready(&gradient->output);

  Clear(&gradient->hidden);
  for (size_t n = 0; n < images.size(); ++n) {
    AddOuter(BackThrough(network.output, dscores[n], hidden[n]), images[n]->pixels,
             &gradient->hidden);
  }
  ready(&gradient->hidden);
  return loss;
}

void Descend(Network* network, const Network& gradient, float step) {
  DescendLayer(&network->hidden, gradient.hidden, step);
  DescendLayer(&network->output, gradient.output, step);
}

}  // namespace digits
