// SPDX-License-Identifier: Apache-2.0
// The gradients of ResNet-50: what one step of training it makes the ranks average.
#pragma once

#include <cstddef>
#include <vector>

namespace bench {

// Elements of each of its 161 gradients, in the order of the parameters; 25,557,032 in all.
std::vector<size_t> Resnet50Gradients();

}  // namespace bench
