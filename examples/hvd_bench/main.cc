// Measures hvd's collectives.
//   hvdrun -np 2 build/bin/hvd-bench allreduce --sizes 4,65536,16777216
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "examples/hvd_bench/collective.h"
#include "examples/hvd_bench/measure.h"
#include "examples/hvd_bench/report.h"
#include "examples/hvd_bench/values.h"
#include "hvd/hvd.hpp"

namespace {

constexpr int kUsage = 2;
constexpr size_t kLargest = size_t{1} << 40;

struct Options {
  std::string op;
  std::vector<size_t> sizes = {4, 256, 4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20};
  std::string dtype = "float32";
  int iterations = 0;  // 0: by size
  bool json = false;
};

std::vector<std::string> DtypeNames() {
  std::vector<std::string> names;
  for (const bench::Dtype& dtype : bench::Dtypes()) names.push_back(dtype.name);
  return names;
}

void Declare(CLI::App* app, Options* options) {
  app->option_defaults()->always_capture_default();  // so that --help shows them
  app->add_option("op", options->op, "what to measure")
      ->required()
      ->check(CLI::IsMember(bench::Operations()));
  app->add_option("--sizes", options->sizes,
                  "bytes, separated by commas: of the buffer, for allgather of the whole result")
      ->delimiter(',')
      ->check(CLI::Range(size_t{1}, kLargest));
  app->add_option("--dtype", options->dtype, "type of the elements")
      ->check(CLI::IsMember(DtypeNames()));
  app->add_option("--iters", options->iterations, "timed calls a size; 0: by size")
      ->check(CLI::Range(0, 100000000));
  app->add_flag("--json", options->json, "a line of JSON a size instead of the table");
}

void PrintOnRank0(const std::string& line) {
  if (hvd::rank() != 0) return;
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void Run(const Options& options) {
  hvd::Session session;
  const bench::Dtype dtype = *bench::FindDtype(options.dtype);
  if (!options.json) PrintOnRank0(bench::TableHead(options.op, options.dtype, hvd::size()));
  for (const size_t bytes : options.sizes) {
    const auto collective = bench::MakeCollective(options.op, dtype, bytes);
    const int iterations =
        options.iterations > 0 ? options.iterations : bench::IterationsFor(bytes);
    bench::Result result{options.op, options.dtype, hvd::size(), collective->bytes(), {}, 0};
    result.times_us = bench::Measure(iterations, collective.get());
    result.bus_factor = collective->bus_factor();
    PrintOnRank0(options.json ? bench::JsonLine(result) : bench::TableLine(result));
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures hvd's collectives; start it with hvdrun.", "hvd-bench");
  Declare(&app, &options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  try {
    Run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hvd-bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
