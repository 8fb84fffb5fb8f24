// SPDX-License-Identifier: Apache-2.0
#include "cli/reach/agent_failure.h"

#include <catch2/catch.hpp>

#include "cli/front/words/agents.h"

namespace hvd::cli {
namespace {

StartFailure Explain(const std::string& shell, int code, const std::string& errors) {
  StartEnd end;
  end.wait_status = code << 8;
  end.errors = errors;
  end.shell = shell;
  end.host = "n7";
  end.login = shell + " n7";
  return ExplainStartFailure(end);
}

// Slurm 22.05, Grid Engine 8.1, kubectl 1.32, podman 4.3 and docker 20.10 print these words.
TEST_CASE("each agent's words are told as what they mean") {
  const auto fault = [](const char* shell, const char* errors) {
    return Explain(shell, 1, errors).fault;
  };
  CHECK(fault("srun",
              "srun: error: Unable to create step for job 7: Invalid node name specified\n") ==
        StartFault::kUnknownHost);
  CHECK(fault("srun",
              "srun: error: Unable to create step for job 7: Job/step already completing or "
              "completed\n") == StartFault::kRefused);
  CHECK(fault("srun",
              "srun: error: Unable to confirm allocation for job 7: Invalid job id "
              "specified\n") == StartFault::kRefused);
  CHECK(fault("kubectl", "Error from server (NotFound): pods \"n7\" not found\n") ==
        StartFault::kUnknownHost);
  CHECK(fault("kubectl",
              "Error from server (Forbidden): pods \"n7\" is forbidden: User \"x\" cannot "
              "create resource \"pods/exec\"\n") == StartFault::kDenied);
  CHECK(fault("podman", "Error: no container with name or ID \"n7\" found: no such container\n") ==
        StartFault::kUnknownHost);
  CHECK(fault("docker", "Error: No such container: n7\n") == StartFault::kUnknownHost);
  CHECK(fault("docker",
              "OCI runtime exec failed: exec failed: container_linux.go:380: starting "
              "container process caused: exec: \"/bin/sh\": stat /bin/sh: no such file or "
              "directory: unknown\n") == StartFault::kRestrictedShell);
}

TEST_CASE("the next step names the host and the agent") {
  const StartFailure slurmd = Explain(
      "srun", 1, "srun: error: Task launch failed on node n7: Communication connection failure\n");
  CHECK(slurmd.remedy == "is slurmd up on n7 (sinfo -N -n n7)?");
  const StartFailure execd = Explain("qrsh", 1,
                                     "error: executing task of job 14 failed: failed sending task "
                                     "to execd@n7: got send error\n");
  CHECK(execd.remedy == "is sge_execd up on n7 (qhost -h n7)?");
  const StartFailure slot = Explain("qrsh", 1,
                                    "error: executing task of job 11 failed: execution daemon on "
                                    "host \"n7\" didn't accept task\n");
  CHECK(slot.remedy.find("a slot on n7 that is free") != std::string::npos);
  CHECK(Explain("podman", 125, "Error: no such container n7\n").remedy == "see `podman ps --all`");
}

TEST_CASE("an agent that is not here is told so, not as a command that is missing there") {
  const StartFailure missing = Explain("srun", 127, "srun: 1: exec: srun: not found\n");
  CHECK(missing.fault == StartFault::kShellMissing);
  CHECK(missing.cause == "srun cannot be started here");
}

TEST_CASE("ssh's words are ssh's alone") {
  const char* refused = "connect to host n7 port 22: Connection refused\n";
  CHECK(Explain("ssh", 255, refused).fault == StartFault::kRefused);
  CHECK(Explain("/usr/bin/ssh", 255, refused).fault == StartFault::kRefused);
  for (const char* other : {"kubectl", "mine"}) {
    CHECK(Explain(other, 1, refused).fault == StartFault::kHvddFailed);
  }
}

TEST_CASE("a manager that ends the job is heard, one whose node has failed is not") {
  CHECK(FindManagerStop("x\nslurmstepd-n1: error: *** STEP 7.0 ON n1 CANCELLED AT "
                        "2026-11-27T06:51:56 DUE TO TIME LIMIT ***\n") ==
        "Slurm: STEP 7.0 ON n1 CANCELLED AT 2026-11-27T06:51:56 DUE TO TIME LIMIT");
  CHECK(
      FindManagerStop("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-27T06:51:56 ***") ==
      "Slurm: JOB 7 ON n1 CANCELLED AT 2026-11-27T06:51:56");
  CHECK(
      FindManagerStop("slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-27T06:51:56 DUE "
                      "TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***") == "");
  CHECK(FindManagerStop("*** CANCELLED AT home ***") == "");
  CHECK(FindManagerStop("") == "");
}

TEST_CASE("agents are known by their names, and by nothing else") {
  CHECK(FindAgent("srun") != nullptr);
  CHECK(FindAgent("ssh") == nullptr);
  CHECK(FindAgent("srun -v") == nullptr);
  const std::vector<std::string> argv = ArgvOf(*FindAgent("kubectl"));
  CHECK(argv == std::vector<std::string>{"/bin/sh", "-c",
                                         "exec kubectl exec -i \"$1\" -- /bin/sh -c \"$2\"",
                                         "kubectl"});
}

}  // namespace
}  // namespace hvd::cli
