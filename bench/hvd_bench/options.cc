// SPDX-License-Identifier: Apache-2.0
#include "bench/hvd_bench/options.h"

#include <CLI/CLI.hpp>
#include <initializer_list>

#include "bench/hvd_bench/collective.h"
#include "bench/hvd_bench/values.h"

namespace bench {
namespace {

constexpr int kUsage = 2;
constexpr size_t kLargest = size_t{1} << 40;

std::vector<std::string> DtypeNames() {
  std::vector<std::string> names;
  for (const Dtype& dtype : Dtypes()) names.push_back(dtype.name);
  return names;
}

std::vector<std::string> Names() {
  std::vector<std::string> names = Operations();
  for (const char* more : {kGradients, kOverlap, kIdle, kLate}) names.emplace_back(more);
  return names;
}

void Declare(CLI::App* app, Options* options) {
  app->option_defaults()->always_capture_default();  // so that --help shows them
  app->add_option("op", options->op,
                  "a collective; gradients: a step of ResNet-50; overlap: computing meanwhile; "
                  "idle, late: what waiting costs")
      ->required()
      ->check(CLI::IsMember(Names()));
  app->add_option("--sizes", options->sizes,
                  "bytes (or 64K, 16M, 1G), separated by commas: of the buffer, for allgather of "
                  "the whole result")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false).description(""))
      ->check(CLI::Range(size_t{1}, kLargest));
  app->add_option("--dtype", options->dtype, "type of the elements")
      ->check(CLI::IsMember(DtypeNames()));
  app->add_option("--buffers", options->buffers,
                  "user: the program's own memory; arena: from hvd_alloc, reduced in place")
      ->check(CLI::IsMember({"user", "arena"}));
  app->add_option("--device", options->device,
                  "where the tensors lie; cuda: on the rank's own GPU, or one that ranks share")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app->add_option("--raw", options->raw,
                  "nccl: the same calls of NCCL's library, without hvd, by turns with hvd's")
      ->check(CLI::IsMember({"nccl"}));
  app->add_option("--iters", options->iterations, "timed calls a size; 0: by size")
      ->check(CLI::Range(0, 100000000));
  app->add_option("--seconds", options->seconds, "how long idle and late take")
      ->check(CLI::Range(0.01, 3600.0));
  app->add_flag("--async", options->async, "submit, then wait, instead of the blocking call");
  app->add_flag("--named,!--unnamed", options->named, "whether the calls have a name");
  app->add_flag("--views", options->views, "gradients are views of one bucket");
  app->add_flag("--json", options->json, "a line of JSON a size instead of the table");
}

// Says which option has no meaning for this operation; empty: all is well.
std::string Conflict(const CLI::App& app, const Options& options) {
  const auto is = [&](const char* op) { return options.op == op; };
  const bool waits = is(kIdle) || is(kLate), barrier = is("barrier");
  const bool on_gpu = options.device == "cuda";
  const auto refuse = [&](std::initializer_list<const char*> flags) {
    for (const char* flag : flags) {
      if (app.count(flag) > 0) return std::string(flag) + " says nothing for " + options.op;
    }
    return std::string();
  };
  if (!options.raw.empty() && !on_gpu) return "--raw is for --device cuda";
  if (on_gpu && (waits || barrier || is(kOverlap) || options.views)) {
    return "--device cuda says nothing for " + (options.views ? "--views" : options.op);
  }
  if (on_gpu && app.count("--buffers") > 0) return "--buffers are the host's; --device is cuda";
  if (is(kGradients) && !options.raw.empty()) return "--raw says nothing for gradients";
  if (waits)
    return refuse({"--sizes", "--dtype", "--buffers", "--iters", "--async", "--named", "--views"});
  if (app.count("--seconds") > 0) return "--seconds is for idle and late";
  if (options.views && (!is(kGradients) || options.buffers == "arena")) {
    return "--views is for gradients, whose bucket lies in the arena anyway";
  }
  if (barrier) return refuse({"--sizes", "--dtype", "--buffers", "--async", "--named"});
  if (is(kGradients)) return refuse({"--sizes", "--async", "--named"});
  return is(kOverlap) ? refuse({"--async"}) : "";
}

}  // namespace

std::optional<Options> ParseOptions(int argc, char** argv, int* exit_code) {
  Options options;
  CLI::App app("Measures hvd's collectives; start it with hvdrun.", "hvd-bench");
  Declare(&app, &options);
  try {
    app.parse(argc, argv);
    const std::string conflict = Conflict(app, options);
    if (!conflict.empty()) throw CLI::ValidationError(conflict);
  } catch (const CLI::ParseError& error) {
    *exit_code = app.exit(error) == 0 ? 0 : kUsage;
    return std::nullopt;
  }
  if (options.op == "barrier") options.sizes = {1};
  if (options.op == kOverlap && app.count("--sizes") == 0) options.sizes = {64 << 20};
  return options;
}

}  // namespace bench
