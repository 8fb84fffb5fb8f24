// SPDX-License-Identifier: Apache-2.0
#include "bench/hvd_bench/resnet50.h"

namespace bench {
namespace {

struct Stage {
  size_t planes;
  int blocks;
};

// A convolution and its batch norm's scale and shift.
void Convolution(size_t out, size_t in, size_t window, std::vector<size_t>* counts) {
  counts->push_back(out * in * window * window);
  counts->push_back(out);
  counts->push_back(out);
}

}  // namespace

std::vector<size_t> Resnet50Gradients() {
  std::vector<size_t> counts;
  counts.reserve(161);
  Convolution(64, 3, 7, &counts);
  size_t width = 64;
  for (const Stage stage : {Stage{64, 3}, Stage{128, 4}, Stage{256, 6}, Stage{512, 3}}) {
    for (int block = 0; block < stage.blocks; ++block) {
      Convolution(stage.planes, width, 1, &counts);
      Convolution(stage.planes, stage.planes, 3, &counts);
      Convolution(stage.planes * 4, stage.planes, 1, &counts);
      if (block == 0) Convolution(stage.planes * 4, width, 1, &counts);
      width = stage.planes * 4;
    }
  }
  counts.push_back(1000 * width);
  counts.push_back(1000);
  return counts;
}

}  // namespace bench
