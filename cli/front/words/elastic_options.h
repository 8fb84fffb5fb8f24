// SPDX-License-Identifier: Apache-2.0
// The options of jobs whose members come and go, checked.
#pragma once

#include "absl/status/status.h"
#include "cli/front/words/option_table.h"
#include "cli/front/words/options.h"

namespace hvd::cli {

// Sets typed->run.elastic if any of --min-np, --max-np and --host-discovery-script is given; the
// others need one of these. Call it when the hosts and -np have been read.
absl::Status ReadElastic(const ElasticTexts& texts, TypedOptions* typed);

}  // namespace hvd::cli
