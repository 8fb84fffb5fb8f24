// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/address_head.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hvd::rt {
namespace {

std::string MarkOf(const AddressHead& head, int rank) {
  return absl::StrFormat("%d %016x ", rank, head.mark);
}

}  // namespace

std::string PutAddressHead(const AddressHead& head, const std::string& rest) {
  return absl::StrCat(head.kind, " ", MarkOf(head, head.rank), rest);
}

absl::StatusOr<std::string> TakeAddressHead(const AddressHead& own, int rank,
                                            const std::string& address) {
  const size_t end = address.find(' ');
  if (end == std::string::npos || end > 8) {
    return absl::InvalidArgumentError(absl::StrFormat("rank %d has sent no address", rank));
  }
  const std::string kind = address.substr(0, end);
  if (kind != own.kind) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "rank %d sends over %s and rank %d over %s; all ranks must use the same: set "
        "HVD_TRANSPORT=tcp for all (where it is not set, hosts with an active RDMA port and UCX "
        "use "
        "ucx, others tcp)",
        own.rank, own.kind, rank, kind));
  }
  const std::string mark = MarkOf(own, rank);
  if (address.compare(end + 1, mark.size(), mark) != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the address of rank %d belongs to another epoch or rank", rank));
  }
  return address.substr(end + 1 + mark.size());
}

}  // namespace hvd::rt
