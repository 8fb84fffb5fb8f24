// SPDX-License-Identifier: Apache-2.0
#include "proto/adoption.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>

namespace hvd {
namespace {

constexpr std::string_view kBegin = "hvd-adoption-1";
constexpr std::string_view kNone = "-";
constexpr int kMostRanks = 1 << 16;

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

bool ParseNumber(std::string_view text, int least, int most, int* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && *number >= least &&
         *number <= most;
}

std::string Given(std::string_view word) { return std::string(word.empty() ? kNone : word); }

// "0/2/3,9/1/1": 0, 2, 4, 9. There may be thousands of them in turn.
std::string FormatNumbers(const std::vector<int>& numbers) {
  std::string text;
  for (size_t at = 0; at < numbers.size();) {
    size_t end = at + 1;
    const int step = end < numbers.size() ? numbers[end] - numbers[at] : 1;
    while (end < numbers.size() && numbers[end] - numbers[end - 1] == step) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(numbers[at]) + "/" + std::to_string(step) +
            "/" + std::to_string(end - at);
    at = end;
  }
  return text;
}

bool ParseNumbers(std::string_view text, std::vector<int>* numbers) {
  if (text == kNone) return true;
  for (const std::string_view run : Split(text, ',')) {
    const std::vector<std::string_view> parts = Split(run, '/');
    int first, step, count;
    if (parts.size() != 3 || !ParseNumber(parts[0], 0, kMostRanks, &first) ||
        !ParseNumber(parts[1], 1, kMostRanks, &step) ||
        !ParseNumber(parts[2], 1, kMostRanks / step + 1, &count) ||
        numbers->size() + count > kMostRanks) {
      return false;
    }
    for (int i = 0; i < count; ++i) numbers->push_back(first + i * step);
  }
  return true;
}

bool ParseHost(std::string_view line, AdoptedHost* host) {
  const std::vector<std::string_view> words = Split(line, ' ');
  if (words.size() != 6 || !std::all_of(words.begin(), words.end() - 2, IsAdoptionWord)) {
    return false;
  }
  host->name = words[0];
  if (!ParseNumber(words[1], 1, kMostRanks, &host->ranks)) return false;
  if (!ParseNumber(words[2], 0, 65535, &host->port)) return false;
  if (words[3] != kNone) host->secret = words[3];
  if (!ParseNumbers(words[5], &host->numbers)) return false;
  if (words[4] == kNone) return true;
  for (const std::string_view address : Split(words[4], ',')) {
    if (!IsAdoptionWord(address)) return false;
    host->addresses.emplace_back(address);
  }
  return true;
}

}  // namespace

bool IsAdoptionWord(std::string_view word) {
  const auto fits = [](char c) { return c > ' ' && c < 0x7f && c != ','; };
  return !word.empty() && std::all_of(word.begin(), word.end(), fits);
}

std::string FormatAdoption(const Adoption& adoption) {
  std::string text = std::string(kBegin) + " " + adoption.by + " " + adoption.key;
  for (const AdoptedHost& host : adoption.hosts) {
    std::string addresses;
    for (const std::string& address : host.addresses) {
      addresses += (addresses.empty() ? "" : ",") + address;
    }
    text += "\n" + host.name + " " + std::to_string(host.ranks) + " " + std::to_string(host.port) +
            " " + Given(host.secret) + " " + Given(addresses) + " " +
            Given(FormatNumbers(host.numbers));
  }
  return text;
}

std::optional<Adoption> ParseAdoption(std::string_view text) {
  const std::vector<std::string_view> lines = Split(text, '\n');
  const std::vector<std::string_view> head = Split(lines[0], ' ');
  if (head.size() != 3 || head[0] != kBegin || lines.size() < 2) return std::nullopt;
  if (!IsAdoptionWord(head[1]) || !IsAdoptionWord(head[2])) return std::nullopt;
  Adoption adoption;
  adoption.by = head[1];
  adoption.key = head[2];
  for (size_t i = 1; i < lines.size(); ++i) {
    adoption.hosts.emplace_back();
    if (!ParseHost(lines[i], &adoption.hosts.back())) return std::nullopt;
  }
  return adoption;
}

std::string ClaimName(std::string_view key, unsigned user, int rank) {
  return "hvd-adopt-" + std::to_string(user) + "-" + std::string(key) + "-" + std::to_string(rank);
}

ClaimAddress::ClaimAddress(std::string_view claim) {
  name.sun_family = AF_UNIX;
  const size_t length = std::min(claim.size(), sizeof(name.sun_path) - 1);
  std::memcpy(name.sun_path + 1, claim.data(), length);  // behind the byte of the abstract ones
  size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

}  // namespace hvd
