// SPDX-License-Identifier: Apache-2.0
// Where in its course a program is, as far as its state says so.
#include <algorithm>
#include <string_view>

#include "base/stable_hash.h"
#include "runtime/collective/reduction_rules.h"
#include "runtime/state/elastic/state.h"

namespace hvd::rt {
namespace {

constexpr uint64_t kMostOfTensor = 4096;     // bytes; larger ones are data, not counters
constexpr uint64_t kMostOfBytes = 64 << 10;  // a commit is to stay quick

bool Counts(const StateItem& item, const StateEntries& entries) {
  if (item.is_bytes) return true;
  return item.kind == HVD_STATE_REPLICATED && item.bytes <= kMostOfTensor &&
         IsInteger(static_cast<hvd_dtype_t>(item.dtype)) &&
         entries.TensorOf(item).device_type == HVD_CPU;
}

}  // namespace

uint64_t PlaceOf(const StateEntries& entries, const StateLayout& layout) {
  StableHash hash;
  bool any = false;
  for (const StateItem& item : layout.items) {
    if (item.bytes == 0 || !Counts(item, entries)) continue;
    const void* const data =
        item.is_bytes ? entries.BytesOf(item).data() : entries.TensorOf(item).data;
    hash.Add(item.name.size()).Add(item.name).Add(item.bytes);
    hash.Add(std::string_view(static_cast<const char*>(data), std::min(item.bytes, kMostOfBytes)));
    any = true;
  }
  return any ? hash.value() | 1 : 0;
}

}  // namespace hvd::rt
