// SPDX-License-Identifier: Apache-2.0
// Names of one report, shown so that a reader can tell them apart.
#pragma once

#include <string>
#include <vector>

namespace hvd {

// As ShownName. But of long names that begin alike, which it would show alike, the beginning and
// the part that differs: "'model.layers.0...block.17.weight'". Two equal names are shown alike.
// By name.
std::vector<std::string> ShownApart(const std::vector<std::string>& names);

}  // namespace hvd
