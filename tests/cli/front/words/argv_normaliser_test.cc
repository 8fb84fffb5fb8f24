// SPDX-License-Identifier: Apache-2.0
#include "cli/front/words/argv_normaliser.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;

const std::vector<OptionSpelling> kSpellings = {
    {"-n", "--num-proc", true, true},
    {"-np", "--num-proc", true, true},
    {"-H", "--hosts", true, false},
    {"-hostfile", "--hostfile", true, false},
    {"-h", "--help", false, false},
    {"--verbose", "--verbose", false, false},
    {"--containment", "--containment", true, false},
    {"-cb", "--check-build", false, false},
};

// "options | command" or the error, of the words between single blanks.
std::string Normalised(const std::string& line) {
  const std::vector<std::string> words =
      line.empty() ? std::vector<std::string>() : absl::StrSplit(line, ' ');
  const auto args = NormaliseArgs(words, kSpellings);
  if (!args.ok()) return std::string(args.status().message());
  return absl::StrJoin(args->options, " ") + " | " + absl::StrJoin(args->command, " ");
}

TEST_CASE("spellings become canonical") {
  CHECK(Normalised("-np 8 prog") == "--num-proc 8 | prog");
  CHECK(Normalised("-np=8 prog") == "--num-proc 8 | prog");
  CHECK(Normalised("-n8 prog") == "--num-proc 8 | prog");
  CHECK(Normalised("-hostfile f prog") == "--hostfile f | prog");
  CHECK(Normalised("-H a=b prog") == "--hosts a=b | prog");
  CHECK(Normalised("-cb") == "--check-build | ");
  CHECK(Normalised("") == " | ");
}

TEST_CASE("options end at the first word of the command or at --") {
  CHECK(Normalised("-np 2 prog -np 3 --verbose") == "--num-proc 2 | prog -np 3 --verbose");
  CHECK(Normalised("prog --unknown -h") == " | prog --unknown -h");
  CHECK(Normalised("--verbose -- -np 2") == "--verbose | -np 2");
  CHECK(Normalised("prog -- x") == " | prog -- x");
  CHECK(Normalised("-np 2 --") == "--num-proc 2 | ");
}

TEST_CASE("unknown options are refused with the nearest known") {
  CHECK(Normalised("-hostfil f") == "unknown option \"-hostfil\"; did you mean -hostfile?");
  CHECK(Normalised("--verbos") == "unknown option \"--verbos\"; did you mean --verbose?");
  CHECK(Normalised("--contain x") == "unknown option \"--contain\"; did you mean --containment?");
  CHECK(Normalised("--containmnet=x") ==
        "unknown option \"--containmnet\"; did you mean --containment?");
  CHECK(Normalised("-np4 prog") == "unknown option \"-np4\"; did you mean -np 4?");
  CHECK(Normalised("--banana") == "unknown option \"--banana\"; hvdrun --help lists them");
  CHECK(Normalised("-c 2 prog") == "unknown option \"-c\"; hvdrun --help lists them");
  CHECK(Normalised("-N 2 prog") == "unknown option \"-N\"; did you mean -n?");
  CHECK(Normalised("-npx 2").find("unknown option \"-npx\"") == 0);
  CHECK(Normalised("-Hosts").find("unknown option \"-Hosts\"") == 0);
  CHECK(Normalised("-h2").find("unknown option \"-h2\"") == 0);
  CHECK(Normalised("-").find("unknown option") == 0);
}

TEST_CASE("Horovod's options are known by name") {
  CHECK(Normalised("--jsrun prog") ==
        "--jsrun is Horovod's; hvdrun takes it with --compat horovod, to no effect: no mpirun or "
        "jsrun is started, hvdd starts the ranks");
  CHECK(Normalised("--config-file=f prog") ==
        "--config-file is Horovod's; hvdrun takes it with --compat horovod");
}

TEST_CASE("who comes from another launcher is told how it is said here") {
  CHECK(Normalised("--allow-run-as-root prog") ==
        "unknown option \"--allow-run-as-root\"; root needs no permission here: leave it out");
  CHECK_THAT(Normalised("-oversubscribe prog"), Contains("-H host1:8"));
  CHECK_THAT(Normalised("--nproc_per_node=2 prog"), Contains("-H host1:2,host2:2"));
  CHECK_THAT(Normalised("-ppn 2 prog"), Contains("-H host1:2,host2:2"));
  CHECK_THAT(Normalised("--mca btl tcp prog"), Contains("HVD_"));
}

TEST_CASE("values are neither missing nor superfluous") {
  CHECK(Normalised("-np") == "the value of -np is missing");
  CHECK(Normalised("-np -H a prog") == "the value of -np is missing");
  CHECK(Normalised("-np -- prog") == "the value of -np is missing");
  CHECK(Normalised("-np -1 prog") == "--num-proc -1 | prog");
  CHECK(Normalised("--verbose=1") == "--verbose takes no value");
}

}  // namespace
}  // namespace hvd::cli
