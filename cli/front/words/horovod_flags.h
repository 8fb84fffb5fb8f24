// SPDX-License-Identifier: Apache-2.0
// Every flag of horovodrun and what becomes of it here. Data, and how it is told.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cli/front/words/argv_normaliser.h"

namespace hvd::cli {

enum class HorovodFate {
  kOurs,     // hvdrun has it under the same names
  kConfig,   // the config file: read where horovodrun's words are
  kSetting,  // gives the workers what `words` says: "HVD_TRANSPORT=tcp"
  kNote,     // taken, and told that it has nothing to set; `words` say why
};

struct HorovodFlag {
  const char* names;  // every spelling, "-p,--ssh-port"
  int values;         // words that follow it
  HorovodFate fate;
  // For kNote, a name that begins with HOROVOD_ stands for what proto/settings/settings.h says of
  // that variable; for kOurs: what is different here, for people.
  const char* words;
  // Its place in horovodrun's config file, "params.cache_capacity". A flag without values has true
  // there; false is its opposite.
  const char* key = nullptr;
};

absl::Span<const HorovodFlag> HorovodFlags();

// The flag with this spelling; nothing: horovodrun has none.
const HorovodFlag* FindHorovodFlag(absl::string_view name);

// The flag that the config file's key stands for; nothing: there is no such key.
const HorovodFlag* FindHorovodKey(absl::string_view key);

// --no-autotune of --autotune, and the other way round; nothing: it has none.
const HorovodFlag* OppositeOf(const HorovodFlag& flag);

// The first of its long names; it stands for all of them.
std::string CanonicalName(const HorovodFlag& flag);

// Its words in full.
std::string WordsOf(const HorovodFlag& flag);

// The spellings that hvdrun does not have by itself.
std::vector<OptionSpelling> HorovodSpellings();

// Returns what --help says besides, where horovodrun's words are taken.
std::string HorovodHelp();

// The table of cli/HOROVOD.md.
std::string HorovodMarkdown();

}  // namespace hvd::cli
