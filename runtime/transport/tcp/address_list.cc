// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/address_list.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hvd::rt {
namespace {

constexpr size_t kMostAddresses = 64;

// "10.0.0.1#4711#eth0"
absl::StatusOr<PeerAddress> DecodeAddress(const std::string& word) {
  const std::vector<std::string> parts = absl::StrSplit(word, absl::MaxSplits('#', 2));
  uint32_t port = 0;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[1], &port) || port == 0 || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("'", word, "' is no address"));
  }
  absl::StatusOr<SocketAddress> at = MakeSocketAddress(parts[0], static_cast<uint16_t>(port));
  if (!at.ok()) return at.status();
  return PeerAddress{*at, parts[2]};
}

}  // namespace

std::string EncodeAddressList(const AddressList& list) {
  std::string text = list.host;
  for (const PeerAddress& one : list.addresses) {
    absl::StrAppend(&text, " ", one.at.Host(), "#", one.at.Port(), "#", one.device);
  }
  return text;
}

absl::StatusOr<AddressList> DecodeAddressList(const std::string& text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  AddressList list;
  list.host = words[0];
  if (words.size() > kMostAddresses) return absl::InvalidArgumentError("too many addresses");
  for (size_t i = 1; i < words.size(); ++i) {
    absl::StatusOr<PeerAddress> address = DecodeAddress(words[i]);
    if (!address.ok()) return address.status();
    list.addresses.push_back(*std::move(address));
  }
  return list;
}

std::vector<PeerAddress> InCallingOrder(std::vector<PeerAddress> addresses,
                                        const std::string& likely,
                                        const std::vector<std::string>& own) {
  const auto place = [&](const PeerAddress& one) {
    const std::string host = one.at.Host();
    if (std::find(own.begin(), own.end(), host) != own.end()) return 2;
    return host == likely ? 0 : 1;
  };
  std::stable_sort(addresses.begin(), addresses.end(),
                   [&](const PeerAddress& a, const PeerAddress& b) { return place(a) < place(b); });
  return addresses;
}

}  // namespace hvd::rt
