#include "hostfile/core_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hvd {

std::vector<int> CoresFor(int local_rank, int local_size, absl::Span<const int> cores) {
  const int count = static_cast<int>(cores.size());
  if (local_size < 1 || local_rank < 0 || local_rank >= local_size || count < 1) {
    return {cores.begin(), cores.end()};
  }
  if (count < local_size) {
    if (local_size % count != 0) return {cores.begin(), cores.end()};
    return {cores[local_rank / (local_size / count)]};
  }
  const int share = count / local_size;
  const int rest = count % local_size;
  const int first = local_rank * share + std::min(local_rank, rest);
  const absl::Span<const int> mine = cores.subspan(first, share + (local_rank < rest ? 1 : 0));
  return {mine.begin(), mine.end()};
}

std::string FormatCores(absl::Span<const int> cores) {
  std::string text;
  for (size_t from = 0; from < cores.size();) {
    size_t to = from;
    while (to + 1 < cores.size() && cores[to + 1] == cores[to] + 1) ++to;
    absl::StrAppend(&text, text.empty() ? "" : ",", cores[from]);
    if (to > from) absl::StrAppend(&text, "-", cores[to]);
    from = to + 1;
  }
  return text.empty() ? "-" : text;
}

}  // namespace hvd
