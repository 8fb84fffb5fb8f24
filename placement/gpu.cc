// SPDX-License-Identifier: Apache-2.0
#include "placement/gpu.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace hvd {
namespace {

constexpr absl::string_view kCard = "GPU-";
constexpr absl::string_view kInstance = "MIG-";
constexpr size_t kShortDigits = 8;

using Gpus = std::vector<Gpu>;

Gpus UsableOf(const GpuCard& card) { return card.in_mig_mode ? card.instances : Gpus{card.gpu}; }

// Whether the word is the GPU's UUID (`whole`), or the beginning of it: whole names come first.
bool Begins(const Gpu& gpu, absl::string_view word, bool whole) {
  return whole ? gpu.uuid == word : absl::StartsWith(gpu.uuid, word);
}

// Returns the GPUs of the card that the word names; nothing if it does not name just one.
std::optional<Gpus> CardNamed(absl::Span<const GpuCard> cards, absl::string_view word, bool whole) {
  std::optional<Gpus> found;
  for (const GpuCard& card : cards) {
    if (!Begins(card.gpu, word, whole)) continue;
    if (found.has_value()) return std::nullopt;
    found = UsableOf(card);
  }
  return found;
}

std::optional<Gpus> InstanceNamed(absl::Span<const GpuCard> cards, absl::string_view word,
                                  bool whole) {
  std::optional<Gpus> found;
  for (const GpuCard& card : cards) {
    for (const Gpu& instance : card.instances) {
      if (!Begins(instance, word, whole)) continue;
      if (found.has_value()) return std::nullopt;
      found = {instance};
    }
  }
  return found;
}

std::optional<Gpus> Named(absl::Span<const GpuCard> cards, absl::string_view word) {
  unsigned index = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
  if (error == std::errc() && end == word.data() + word.size()) {
    return index < cards.size() ? std::optional(UsableOf(cards[index])) : std::nullopt;
  }
  for (const bool whole : {true, false}) {
    std::optional<Gpus> found;
    if (absl::StartsWith(word, kCard) && word != kCard) found = CardNamed(cards, word, whole);
    if (absl::StartsWith(word, kInstance) && word != kInstance) {
      found = InstanceNamed(cards, word, whole);
    }
    if (found.has_value()) return found;
  }
  return std::nullopt;
}

void AddNew(const Gpus& more, Gpus* gpus) {
  for (const Gpu& gpu : more) {
    const bool known = std::any_of(gpus->begin(), gpus->end(),
                                   [&](const Gpu& other) { return other.uuid == gpu.uuid; });
    if (!known) gpus->push_back(gpu);
  }
}

}  // namespace

bool IsMigInstance(const Gpu& gpu) { return absl::StartsWith(gpu.uuid, kInstance); }

std::optional<std::string> InheritedMask(absl::Span<const std::string> environment) {
  for (const absl::string_view name : {"HVD_CUDA_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES="}) {
    for (const std::string& entry : environment) {
      if (absl::StartsWith(entry, name)) return entry.substr(name.size());
    }
  }
  return std::nullopt;
}

std::vector<Gpu> VisibleGpus(absl::Span<const GpuCard> cards,
                             const std::optional<std::string>& mask) {
  Gpus gpus;
  if (!mask.has_value()) {
    for (const GpuCard& card : cards) AddNew(UsableOf(card), &gpus);
    return gpus;
  }
  for (const absl::string_view word : absl::StrSplit(*mask, ',')) {
    const std::optional<Gpus> named = Named(cards, absl::StripAsciiWhitespace(word));
    if (!named.has_value()) break;
    AddNew(*named, &gpus);
  }
  return gpus;
}

std::string ShortUuid(const std::string& uuid) {
  // "MIG-GPU-…/1/0", as older drivers name instances, differ at their end.
  const size_t dash = uuid.find('-');
  if (dash == std::string::npos || absl::StrContains(uuid, "/")) return uuid;
  return uuid.substr(0, dash + 1 + kShortDigits);
}

}  // namespace hvd
