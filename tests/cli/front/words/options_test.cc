// SPDX-License-Identifier: Apache-2.0
#include "cli/front/words/options.h"

#include <catch2/catch.hpp>

#include "tests/cli/front/words/typed_words.h"

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("every spelling of a number of ranks counts") {
  for (const char* spelling : {"-np", "-n", "--np", "--num-proc"}) {
    CHECK(Parse({spelling, "3"}).np == 3);
  }
  CHECK(Parse({"-n5"}).np == 5);
  CHECK(Parse({}).np == 0);
  CHECK(Parse({"-np", "2", "-np", "4"}).np == 4);
}

TEST_CASE("every spelling of the hosts counts") {
  for (const char* spelling : {"-H", "--hosts", "-host", "--host"}) {
    CHECK(Parse({spelling, "a:2,[::1]:4"}).hosts == "a:2,[::1]:4");
  }
  CHECK(Parse({"-H", "[::1]"}).hosts == "[::1]");
  CHECK(Parse({"-H", "[fe80::1],[fe80::2]"}).hosts == "[fe80::1],[fe80::2]");
  for (const char* spelling : {"-hostfile", "--hostfile", "-machinefile", "--machinefile"}) {
    const TypedOptions typed = Parse({spelling, "f"});
    CHECK(typed.hostfile == "f");
    CHECK(typed.has_hostfile);
    CHECK_FALSE(typed.has_hosts);
    CHECK(typed.ask == Ask::kRun);
  }
}

TEST_CASE("all options reach their field") {
  const RunOptions run = Parse({"-p",
                                "2222",
                                "-i",
                                "key",
                                "--rsh-agent",
                                "my rsh -q",
                                "--prefix",
                                "/opt/hvd",
                                "--start-timeout",
                                "2m",
                                "--timeout",
                                "90",
                                "--lease",
                                "3s",
                                "--grace",
                                "500ms",
                                "--containment",
                                "cgroup",
                                "--stdin",
                                "all",
                                "--output-filename",
                                "out",
                                "--prefix-timestamp",
                                "--verbose"})
                             .run;
  CHECK(run.ssh_port == 2222);
  CHECK(run.ssh_identity == "key");
  CHECK(run.rsh_agent == "my rsh -q");
  CHECK(run.prefix == "/opt/hvd");
  CHECK(run.start_timeout_s == 120);
  CHECK(run.run_timeout_s == 90);
  CHECK(run.lease_s == 3);
  CHECK(run.grace_s == 0.5);
  CHECK(run.containment == 2);
  CHECK(run.stdin_rank == -2);
  CHECK(run.output_directory == "out");
  CHECK(run.timestamps);
  CHECK(run.verbose);
}

TEST_CASE("what is not given keeps its default") {
  const RunOptions run = Parse({}).run;
  const RunOptions fresh;
  CHECK(run.ssh_port == 0);
  CHECK(run.start_timeout_s == fresh.start_timeout_s);
  CHECK(run.run_timeout_s == 0);
  CHECK(run.lease_s == fresh.lease_s);
  CHECK(run.grace_s == fresh.grace_s);
  CHECK(run.containment == 0);
  CHECK(run.stdin_rank == 0);
  CHECK_FALSE(run.verbose);
  CHECK_FALSE(run.timestamps);
}

TEST_CASE("containment, binding, stdin and forwarded names are read") {
  CHECK(Parse({"--containment", "auto"}).run.containment == 0);
  CHECK(Parse({"--containment", "namespace"}).run.containment == 1);
  CHECK(Parse({"--containment", "subreaper"}).run.containment == 3);
  CHECK(Parse({"--bind", "cores"}).run.binds_cores);
  CHECK_FALSE(Parse({"--bind", "none"}).run.binds_cores);
  CHECK(Parse({}).run.binds_cores);
  CHECK(Parse({"--gpus-per-rank", "2"}).run.gpus_per_rank == 2);
  CHECK(Parse({"--gpus-per-rank=0"}).run.gpus_per_rank == 0);
  CHECK_FALSE(Parse({}).run.gpus_per_rank.has_value());
  CHECK(Parse({"--report-bindings"}).run.report_bindings);
  CHECK_FALSE(Parse({}).run.report_bindings);
  CHECK(Parse({"--stdin", "none"}).run.stdin_rank == -1);
  CHECK(Parse({"--stdin=7"}).run.stdin_rank == 7);
  CHECK(Parse({"-x", "A", "-x", "B=1,2", "--env", "[C]"}).forwarded == Words{"A", "B=1,2", "[C]"});
  CHECK(Parse({"-prefix-timestamp"}).run.timestamps);
}

TEST_CASE("questions are recognised") {
  CHECK(Parse({"-h"}).ask == Ask::kHelp);
  CHECK(Parse({"--help"}).ask == Ask::kHelp);
  CHECK(Parse({"-v"}).ask == Ask::kVersion);
  CHECK(Parse({"--version"}).ask == Ask::kVersion);
  CHECK(Parse({"-cb"}).ask == Ask::kCheckBuild);
  CHECK(Parse({"--check-build"}).ask == Ask::kCheckBuild);
  CHECK(Parse({"--dry-run"}).ask == Ask::kDryRun);
}

TEST_CASE("values that make no sense are refused by name") {
  CHECK_THAT(Refusal({"-np", "0"}), Contains("-np must be a number from 1 to 65536, not \"0\""));
  CHECK_THAT(Refusal({"-np", "-1"}), Contains("-np must be a number from 1 to 65536, not \"-1\""));
  CHECK_THAT(Refusal({"-np", "99999999999999"}), Contains("from 1 to 65536"));
  CHECK_THAT(Refusal({"-p", "65536"}), Contains("--ssh-port must be a number from 1 to 65535"));
  CHECK_THAT(Refusal({"--containment", "jail"}), Contains("must be auto, namespace, cgroup or"));
  CHECK_THAT(Refusal({"--bind", "socket"}), Contains("must be cores or none"));
  CHECK_THAT(Refusal({"--stdin", "some"}), Contains("must be none, all or a rank"));
  CHECK_THAT(Refusal({"--stdin", "-1"}), Contains("must be none, all or a rank"));
  CHECK_THAT(Refusal({"--start-timeout", "soon"}),
             Contains("--start-timeout: \"soon\" is not a time"));
  CHECK_THAT(Refusal({"--start-timeout", "0"}), Contains("must be at least 0.001s"));
  CHECK_THAT(Refusal({"--lease", "100ms"}), Contains("--lease must be at least 1s, not 100ms"));
  CHECK(Refusal({"--prefix", ""}) == "the value of --prefix is empty");
  CHECK(Refusal({"-np", ""}) == "the value of -np is empty");
  CHECK(Refusal({"-H="}) == "the value of -H is empty");
}

TEST_CASE("an error of a value points at it and shows how to write one") {
  CHECK(Refusal({"-np", "x"}) ==
        "-np must be a number from 1 to 65536, not \"x\"\n"
        "  -np x\n"
        "      ^\n"
        "  for example -np 4");
  CHECK(Refusal({"--lease", "1 week"}) ==
        "--lease: \"1 week\" is not a time; write 30, 30s, 2m, 1.5h or 500ms\n"
        "  --lease 1 week\n"
        "          ^\n"
        "  for example --lease 30s");
  CHECK(Refusal({"--stall-check-warning-time-seconds", "soon"}) ==
        "--stall-check-warning-time-seconds must be a time, like 60, 500ms or 2m, from 0.1s to "
        "8784h, not \"soon\"\n"
        "  --stall-check-warning-time-seconds soon\n"
        "                                     ^\n"
        "  for example --stall-check-warning-time-seconds 60");
  for (const char* option :
       {"-np", "--ssh-port", "--start-timeout", "--timeout", "--lease", "--grace", "--stdin",
        "--bind", "--containment", "--fusion-threshold-mb", "--cycle-time-ms",
        "--stall-check-warning-time-seconds", "--stall-check-shutdown-time-seconds",
        "--max-pending", "--autotune-warmup-samples", "--autotune-steps-per-sample",
        "--autotune-max-samples", "--log-level"}) {
    const std::string refusal = Refusal({option, "x"});
    const std::string given = std::string("  ") + option + " x\n";
    const std::string caret = std::string(given.size() - 2, ' ') + "^\n";
    const std::string example = std::string("  for example ") + option + " ";
    CHECK_THAT(refusal, Contains("\n" + given + caret + example));
    const std::string value = refusal.substr(refusal.rfind(' ') + 1);
    CHECK_NOTHROW(Parse({option, value}));
  }
}

TEST_CASE("two lists of hosts are refused") {
  CHECK(Refusal({"-H", "a", "-H", "b"}) == "-H is given 2 times; put all hosts into one");
  CHECK(Refusal({"-hostfile", "a", "--hostfile", "b"}) ==
        "--hostfile is given 2 times; put all hosts into one");
  CHECK_THAT(Refusal({"-H", "a", "-hostfile", "f"}), Contains("exclude each other"));
}

TEST_CASE("Horovod's options for settings become the workers' variables") {
  CHECK(Parse({"--fusion-threshold-mb",
               "32",
               "--cycle-time-ms=2.5",
               "--no-stall-check",
               "--stall-check-warning-time-seconds",
               "5",
               "--stall-check-shutdown-time-seconds=9",
               "--timeline-filename",
               "t.json",
               "--autotune",
               "--autotune-log-file",
               "a.csv",
               "--autotune-bayes-opt-max-samples",
               "12",
               "--log-level",
               "DEBUG",
               "--network-interfaces",
               "eth0,eth1",
               "-x",
               "HVD_AUTOTUNE=0"})
            .forwarded ==
        Words{"HVD_FUSION_THRESHOLD=32M", "HVD_BATCH_WAIT_US=2.5ms", "HVD_NET_DEVICES=eth0,eth1",
              "HVD_TIMELINE=t.json", "HVD_STALL_CHECK_DISABLE=1", "HVD_STALL_CHECK_TIME_SECONDS=5",
              "HVD_STALL_SHUTDOWN_TIME_SECONDS=9", "HVD_AUTOTUNE=1", "HVD_AUTOTUNE_LOG=a.csv",
              "HVD_AUTOTUNE_MAX_SAMPLES=12", "HVD_LOG_LEVEL=DEBUG", "HVD_AUTOTUNE=0"});
  CHECK(Parse({"--fusion-threshold-mb", "1", "--fusion-threshold-mb", "2"}).forwarded ==
        Words{"HVD_FUSION_THRESHOLD=2M"});
  CHECK(Parse({"--fusion-threshold-mb", "64K", "--cycle-time-ms", " 50us"}).forwarded ==
        Words{"HVD_FUSION_THRESHOLD=64K", "HVD_BATCH_WAIT_US= 50us"});
  for (const char* wrong : {"lots", "5G"}) {
    CHECK_THAT(Refusal({"--fusion-threshold-mb", wrong}),
               Contains("--fusion-threshold-mb must be a number of MB from 0 to 4096, or have "
                        "another unit behind it (as in 64K), not \"" +
                        std::string(wrong) + "\"\n"));
  }
  CHECK_THAT(Refusal({"--cycle-time-ms", "2000"}),
             Contains("--cycle-time-ms must be a number of ms from 0 to 1000, or have another unit "
                      "behind it (as in 50us), not \"2000\"\n"));
  CHECK_THAT(Refusal({"--log-level", "loud"}), Contains("--log-level must be one of trace,"));
  CHECK_THAT(Refusal({"--autotune", "--no-autotune"}), Contains("excludes"));
}

TEST_CASE("help names every spelling") {
  const std::string help = HelpText();
  for (const char* word : {"-np", "-hostfile", "-machinefile", "-cb", "-prefix-timestamp", "-x",
                           "--lease", "--rsh-agent", "125"}) {
    CHECK_THAT(help, Contains(word));
  }
}

}  // namespace
}  // namespace hvd::cli
