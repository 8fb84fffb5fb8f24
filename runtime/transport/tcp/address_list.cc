// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/address_list.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hvd {
namespace {

constexpr size_t kMostAddresses = 64;

}  // namespace

std::string EncodeAddressList(const AddressList& list) {
  std::string text = list.host;
  for (const SocketAddress& one : list.addresses) {
    absl::StrAppend(&text, " ", one.Host(), "#", one.Port());
  }
  return text;
}

absl::StatusOr<AddressList> DecodeAddressList(const std::string& text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  AddressList list;
  list.host = words[0];
  if (words.size() > kMostAddresses) return absl::InvalidArgumentError("too many addresses");
  for (size_t i = 1; i < words.size(); ++i) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(words[i], '#');
    uint32_t port = 0;
    if (!absl::SimpleAtoi(parts.second, &port) || port == 0 || port > 65535) {
      return absl::InvalidArgumentError(absl::StrCat("'", words[i], "' is no address"));
    }
    absl::StatusOr<SocketAddress> address =
        MakeSocketAddress(parts.first, static_cast<uint16_t>(port));
    if (!address.ok()) return address.status();
    list.addresses.push_back(*address);
  }
  return list;
}

}  // namespace hvd
