#include "proto/leaver.h"

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace hvd {

int LeaverIn(absl::string_view cause) {
  const size_t words = cause.find(" has left the job (hvd_shutdown)");
  if (words == absl::string_view::npos) return -1;
  absl::string_view number = cause.substr(0, words);
  int rank = -1;
  if (!absl::ConsumePrefix(&number, "rank ") || !absl::SimpleAtoi(number, &rank)) return -1;
  return rank;
}

}  // namespace hvd
