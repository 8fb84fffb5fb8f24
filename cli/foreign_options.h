// Options of horovodrun that hvdrun does not have (yet): old job scripts get told so by name.
#pragma once

#include <string>

namespace hvd {

// `name` with its dashes, without a value.
bool IsHorovodOption(const std::string& name);

}  // namespace hvd
