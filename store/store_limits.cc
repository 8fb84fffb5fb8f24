// SPDX-License-Identifier: Apache-2.0
#include "store/store_limits.h"

#include "absl/strings/str_cat.h"
#include "base/printable.h"

namespace hvd {
namespace {

absl::Status Wrong(const StoreRequest& request, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(NameOf(request.verb), ": ", what));
}

absl::Status CheckKeys(const StoreRequest& request) {
  size_t bytes = 0;
  for (const std::string& key : request.keys) {
    if (key.empty()) return Wrong(request, "the key is empty");
    if (key.size() > kMostKeyBytes) {
      return Wrong(request, absl::StrCat("the key ", ShownName(key), " has ", key.size(),
                                         " bytes; at most ", kMostKeyBytes, " are allowed"));
    }
    bytes += key.size();
  }
  if (bytes > kMostWaitBytes) {
    return Wrong(request, absl::StrCat("the keys have ", bytes, " bytes in all; one call takes ",
                                       kMostWaitBytes, "; wait for some of them at a time"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckStoreValue(const StoreRequest& request, size_t bytes) {
  if (bytes <= kMostValueBytes) return absl::OkStatus();
  return Wrong(request, absl::StrCat("the value of ", ShownName(request.keys.front()), " has ",
                                     bytes, " bytes; at most ", kMostValueBytes,
                                     " are allowed: the store is for small agreements, "
                                     "collectives are for data"));
}

absl::Status CheckStoreRequest(const StoreRequest& request) {
  const bool one_key = request.verb != StoreVerb::kWait && request.verb != StoreVerb::kCount;
  if (request.verb == StoreVerb::kNone) return Wrong(request, "this version does not know it");
  if (one_key && request.keys.size() != 1) return Wrong(request, "it takes one key");
  if (absl::Status status = CheckKeys(request); !status.ok()) return status;
  const bool needs_value =
      request.verb == StoreVerb::kSet || request.verb == StoreVerb::kCompareSet;
  if (!needs_value) return absl::OkStatus();
  if (request.value == nullptr) return Wrong(request, "it takes a value");
  if (absl::Status status = CheckStoreValue(request, request.value->size()); !status.ok())
    return status;
  return CheckStoreValue(request, request.expected.size());
}

}  // namespace hvd
