#include "cli/front/words/duration.h"

#include <array>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/source_error.h"

namespace hvd {
namespace {

struct Unit {
  const char* name;
  double seconds;
};
constexpr std::array<Unit, 5> kUnits = {{{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"h", 3600}}};
constexpr double kLongest = 366 * 24 * 3600.0;

}  // namespace

absl::StatusOr<double> ParseDuration(const std::string& text) {
  const size_t digits = text.find_first_not_of("0123456789.");
  const std::string number = text.substr(0, digits);
  const std::string unit = digits == std::string::npos ? "" : text.substr(digits);
  double value = 0;
  if (absl::SimpleAtod(number, &value) && std::isfinite(value)) {
    for (const Unit& known : kUnits) {
      if (unit == known.name && value * known.seconds <= kLongest) return value * known.seconds;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(text), " is not a time; write 30, 30s, 2m, 1.5h or 500ms"));
}

}  // namespace hvd
