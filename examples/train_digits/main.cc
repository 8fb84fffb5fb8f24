// SPDX-License-Identifier: Apache-2.0
// Trains a small network on handwritten digits, data-parallel.
//   hvdrun -np 2 build/bin/train_digits
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "examples/train_digits/digits.h"
#include "examples/train_digits/gpu.h"
#include "examples/train_digits/sums.h"
#include "examples/train_digits/training.h"
#include "hvd/hvd.hpp"

namespace {

constexpr int kUsage = 2;

struct Options {
  std::string data = digits::DefaultPath();
  digits::TrainingOptions training;
  std::string device = "cpu";  // or "cuda"
  bool json = false;
};

void Declare(CLI::App* app, Options* options) {
  app->option_defaults()->always_capture_default();  // so that --help shows them
  digits::TrainingOptions& training = options->training;
  app->add_option("--data", options->data, "digits as CSV, gzipped or not");
  app->add_option("--epochs", training.epochs, "times to go through the data")
      ->check(CLI::Range(1, 100000));
  app->add_option("--batch", training.batch, "images a step, all ranks together")
      ->check(CLI::Range(1, 1000000));
  app->add_option("--lr", training.learning_rate, "learning rate")->check(CLI::Range(1e-9, 1e3));
  app->add_option("--seed", training.seed, "of the shuffles and the first weights");
  app->add_option("--device", options->device,
                  "where the ranks' gradients are summed; cuda: on GPUs, where they are copied")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app->add_flag("--elastic", training.elastic,
                "commit the state, and go on when members of the job have died or come");
  app->add_option("--commit-every", training.commit_every, "batches between two commits")
      ->check(CLI::Range(1, 1000000))
      ->needs("--elastic");
  app->add_flag("--json", options->json, "end with one line of JSON");
}

void PrintProgress(const digits::EpochReport& report, int epochs) {
  std::printf("epoch %*d/%d  loss %.4f  test accuracy %.4f  %.0f samples/s\n", 3, report.epoch,
              epochs, report.loss, report.test_accuracy, report.samples_per_second);
  std::fflush(stdout);
}

void PrintJson(const Options& options, const digits::TrainingResult& result) {
  std::printf("{\"np\":%d,\"batch\":%zu,\"seed\":%llu,\"losses\":[", hvd::size(),
              options.training.batch, static_cast<unsigned long long>(options.training.seed));
  for (size_t i = 0; i < result.losses.size(); ++i) {
    std::printf("%s%.9f", i == 0 ? "" : ",", result.losses[i]);
  }
  std::printf("],\"test_accuracy\":%.4f}\n", result.test_accuracy);
}

// `gpu`: null for sums in host memory.
std::unique_ptr<digits::Sums> MakeSums(digits::Gpu* gpu) {
  if (gpu == nullptr) return digits::MakeHostSums();
  gpu->Open(hvd::local_rank());
  if (hvd::rank() == 0) {
    std::printf(
        "gradients are computed on the CPU, and summed as tensors on the GPU: this example "
        "has no kernels\n");
  }
  return digits::MakeGpuSums(gpu);
}

void Run(const Options& options) {
  const digits::Digits data = digits::Read(options.data, options.training.seed);
  std::unique_ptr<digits::Gpu> gpu;
  if (options.device == "cuda") gpu = std::make_unique<digits::Gpu>();
  hvd::Session session;
  const digits::TrainingResult result = digits::Train(
      data, options.training, [&] { return MakeSums(gpu.get()); },
      [&](const digits::EpochReport& report) {
        if (hvd::rank() == 0) PrintProgress(report, options.training.epochs);
      });
  if (options.json && result.finished && hvd::rank() == 0) PrintJson(options, result);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Trains a small network on handwritten digits; start it with hvdrun.",
               "train_digits");
  Declare(&app, &options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  try {
    Run(options);
  } catch (const digits::DataError& error) {
    std::fprintf(stderr, "train_digits: %s\n", error.what());
    return kUsage;
  } catch (const digits::NoGpu& error) {
    std::fprintf(stderr, "train_digits: --device cuda: %s\n", error.what());
    return kUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_digits: %s\n", error.what());
    return 1;
  }
  return 0;
}
