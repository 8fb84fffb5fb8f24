// SPDX-License-Identifier: Apache-2.0
// What schedulers write into a job's environment, as their manuals and their jobs have it.
#include "cli/front/allocation.h"

#include <signal.h>

#include <catch2/catch.hpp>

#include "cli/front/plan.h"
#include "hostfile/slurm_shape.h"
#include "tests/cli/front/front_worlds.h"

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using Words = std::vector<std::string>;
using Files = std::map<std::string, std::string>;

FrontWorld In(const Words& variables, const Files& files = {}) {
  FrontWorld world = BoxWorld(files);
  world.environment.insert(world.environment.end(), variables.begin(), variables.end());
  return world;
}

// "a:4 b:2 by srun from …".
std::string Shown(const FrontWorld& world) {
  const auto found = FindAllocation(world);
  if (!found.ok()) return std::string(found.status().message());
  if (!found->has_value()) return "none";
  std::string text;
  for (const HostSlots& host : (*found)->hosts) {
    text += host.name + ":" + std::to_string(host.slots) + " ";
  }
  const std::string agent = (*found)->agent.empty() ? "ssh" : (*found)->agent;
  return text + "by " + agent + " from " + (*found)->source;
}

TEST_CASE("Slurm says how many cores each rank has") {
  const Words job = {"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n1", "SLURM_TASKS_PER_NODE=2"};
  const auto cores = [&](const Words& more) {
    Words all = job;
    all.insert(all.end(), more.begin(), more.end());
    return (**FindAllocation(In(all))).cores_per_rank;
  };
  CHECK(cores({"SLURM_CPUS_PER_TASK=6"}) == 6);
  CHECK(cores({}) == 0);
  CHECK(cores({"SLURM_CPUS_PER_TASK=many"}) == 0);
}

TEST_CASE("outside of an allocation there is none") { CHECK(Shown(BoxWorld()) == "none"); }

TEST_CASE("Slurm's shapes are read as it writes them") {
  CHECK(*ParseTasksPerNode("2(x3),1", "V") == std::vector<int>{2, 2, 2, 1});
  CHECK(*ParseTasksPerNode("1", "V") == std::vector<int>{1});
  CHECK(*ParseTasksPerNode("3,1", "V") == std::vector<int>{3, 1});
  for (const char* wrong : {"", "2(x", "2(x)", "x", "2x3", "-1", "1,,2", "2(x3)1", "1(x-1)",
                            "99999999999", "1(x99999999)"}) {
    CHECK_THAT(std::string(ParseTasksPerNode(wrong, "V").status().message()),
               StartsWith("$V is '"));
  }
}

TEST_CASE("Slurm's hosts and tasks make the list") {
  CHECK(Shown(In({"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-3],m5",
                  "SLURM_TASKS_PER_NODE=2(x2),1,4"})) ==
        "n1:2 n2:2 n3:1 m5:4 by srun from Slurm job 7 ($SLURM_JOB_NODELIST)");
  // Without -n: a task a node, or nothing told.
  CHECK(
      Shown(In({"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[01-02]", "SLURM_TASKS_PER_NODE=1(x2)"})) ==
      "n01:1 n02:1 by srun from Slurm job 7 ($SLURM_JOB_NODELIST)");
  CHECK(Shown(In({"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n1"})) ==
        "n1:1 by srun from Slurm job 7 ($SLURM_JOB_NODELIST)");
  CHECK(Shown(In({"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_TASKS_PER_NODE=2,0"})) ==
        "n1:2 by srun from Slurm job 7 ($SLURM_JOB_NODELIST)");
}

TEST_CASE("within a step whose variables replace the job's, the step's own count") {
  CHECK(Shown(In({"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-3]", "SLURM_TASKS_PER_NODE=4",
                  "SLURM_STEP_NODELIST=n2", "SLURM_STEP_TASKS_PER_NODE=4"})) ==
        "n2:4 by srun from Slurm job 7 ($SLURM_STEP_NODELIST)");
  CHECK(Shown(In({"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-3]", "SLURM_TASKS_PER_NODE=2(x3)",
                  "SLURM_STEP_NODELIST=n1", "SLURM_STEP_TASKS_PER_NODE=1"})) ==
        "n1:2 n2:2 n3:2 by srun from Slurm job 7 ($SLURM_JOB_NODELIST)");
}

TEST_CASE("an elastic job asks Slurm for its nodes, and gently unless it is told how often") {
  const FrontWorld world =
      In({"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_TASKS_PER_NODE=2(x2)"});
  TypedOptions typed;
  typed.run.command = {"true"};
  CHECK_FALSE(PlanRun(typed, world)->elastic.has_value());
  typed.run.elastic.emplace();
  const auto asked = PlanRun(typed, world);
  CHECK_THAT(asked->elastic->manager_look, Contains("squeue") && Contains("sinfo"));
  CHECK(asked->elastic->discovery_interval_s == 2);
  typed.run.elastic->interval_is_given = true;
  CHECK(PlanRun(typed, world)->elastic->discovery_interval_s == 1);
  typed.has_hosts = true;
  typed.hosts = "n1,n2";
  CHECK(PlanRun(typed, world)->elastic->manager_look.empty());
}

TEST_CASE("variables of Slurm's that contradict each other are no list of hosts") {
  const std::string text =
      Shown(In({"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-3]", "SLURM_TASKS_PER_NODE=2,1"}));
  CHECK(text ==
        "$SLURM_JOB_NODELIST has 3 hosts and $SLURM_TASKS_PER_NODE (2,1) 2; give the hosts by -H "
        "or --hostfile");
  CHECK_THAT(Shown(In({"SLURM_JOB_NODELIST=n[1-"})), Contains("$SLURM_JOB_NODELIST says so"));
}

TEST_CASE("Grid Engine's file has hosts, slots, queue and processors") {
  const Files files = {
      {"/spool/pe_hostfile", "host0 2 all.q@host0 UNDEFINED\nhost1 1 all.q@host1 <NULL>\n\n"}};
  CHECK(Shown(In({"JOB_ID=12", "PE_HOSTFILE=/spool/pe_hostfile"}, files)) ==
        "host0:2 host1:1 by qrsh from Grid Engine job 12 ($PE_HOSTFILE)");
  CHECK((**FindAllocation(In({"PE_HOSTFILE=/spool/pe_hostfile"}, files))).end_notice == SIGUSR2);
  CHECK_THAT(Shown(In({"PE_HOSTFILE=/gone"})), Contains("/gone is not there"));
  CHECK_THAT(Shown(In({"PE_HOSTFILE=/gone"})), Contains("$PE_HOSTFILE says so; give the hosts by"));
}

TEST_CASE("PBS names a host as often as it has slots") {
  const Files files = {{"/var/spool/pbs/aux/9.srv", "n1.example\nn1.example\nn2.example\n"}};
  CHECK(Shown(In({"PBS_JOBID=9.srv", "PBS_NODEFILE=/var/spool/pbs/aux/9.srv"}, files)) ==
        "n1.example:2 n2.example:1 by ssh from PBS job 9.srv ($PBS_NODEFILE)");
}

TEST_CASE("LSF has a file, or else pairs in a variable") {
  const Files files = {{"/home/me/.lsbatch/1.hostfile", "h1\nh1\nh2\nh2\n"}};
  const Words pairs = {"LSB_JOBID=101", "LSB_MCPU_HOSTS=h1 4 h2 2 "};
  CHECK(Shown(In({"LSB_JOBID=101", "LSB_DJOB_HOSTFILE=/home/me/.lsbatch/1.hostfile",
                  "LSB_MCPU_HOSTS=h1 2 h2 2"},
                 files)) == "h1:2 h2:2 by blaunch from LSF job 101 ($LSB_DJOB_HOSTFILE)");
  CHECK(Shown(In(pairs)) == "h1:4 h2:2 by blaunch from LSF job 101 ($LSB_MCPU_HOSTS)");
  CHECK_THAT(Shown(In({"LSB_MCPU_HOSTS=h1 4 h2"})), Contains("$LSB_MCPU_HOSTS says so"));
}

TEST_CASE("the MPI operator's files state slots, or its variables do") {
  const Files files = {{"/etc/mpi/hostfile", "j-worker-0.j.ns.svc slots=2\nj-worker-1.j.ns.svc\n"},
                       {"/etc/mpi/colons", "a:3\nb:1\n"}};
  CHECK(Shown(In({"OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile",
                  "OMPI_MCA_orte_set_default_slots=4"},
                 files)) ==
        "j-worker-0.j.ns.svc:2 j-worker-1.j.ns.svc:4 by ssh from /etc/mpi/hostfile "
        "($OMPI_MCA_orte_default_hostfile)");
  CHECK(Shown(In({"I_MPI_HYDRA_HOST_FILE=/etc/mpi/colons", "I_MPI_PERHOST=9"}, files)) ==
        "a:3 b:1 by ssh from /etc/mpi/colons ($I_MPI_HYDRA_HOST_FILE)");
  CHECK(Shown(In({"HYDRA_HOST_FILE=/etc/mpi/colons"}, files)) ==
        "a:3 b:1 by ssh from /etc/mpi/colons ($HYDRA_HOST_FILE)");
}

absl::StatusOr<RunOptions> Plan(Words args, const FrontWorld& world) {
  args.push_back("prog");
  const auto typed = ParseOptions(args);
  REQUIRE(typed.ok());
  return PlanRun(*typed, world);
}

const Words kSlurm = {"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=box,n2", "SLURM_TASKS_PER_NODE=2,1",
                      "SLURMD_NODENAME=box"};

TEST_CASE("within an allocation the sentence needs no hosts and no number") {
  const auto run = Plan({}, In(kSlurm, {{"/bin/srun", ""}}));
  REQUIRE(run.ok());
  CHECK(run->np == 3);
  CHECK(run->topology.hosts() == std::vector<HostShape>{{"box", 2}, {"n2", 1}});
  CHECK(run->is_local == std::vector<bool>{true, false});
  CHECK(run->rsh_agent == "srun");
  CHECK(run->hosts_note ==
        "the hosts are those of Slurm job 7 ($SLURM_JOB_NODELIST): 2 hosts, 3 slots, reached by "
        "srun");
  CHECK(Plan({"-np", "2"}, In(kSlurm))->topology.size() == 2);
  CHECK_THAT(std::string(Plan({"-np", "4"}, In(kSlurm)).status().message()),
             StartsWith("-np 4 needs 4 slots, but 2 hosts have 3"));
}

TEST_CASE("what the person says counts more than an allocation") {
  CHECK(Plan({"-H", "a:2"}, In(kSlurm))->hosts_source == "-H");
  CHECK(Plan({"--rsh-agent", "ssh"}, In(kSlurm, {{"/bin/srun", ""}}))->rsh_agent.empty());
  const Words both = {kSlurm[0], kSlurm[1], kSlurm[2], "HVD_HOSTFILE=/hosts"};
  CHECK(Plan({}, In(both, {{"/hosts", "a slots=2\n"}}))->hosts_source == "/hosts");
}

TEST_CASE("an elastic job reads the operator's file again as it was read first") {
  const auto run = Plan({"--min-np", "1"}, In({"OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile",
                                               "OMPI_MCA_orte_set_default_slots=4"},
                                              {{"/etc/mpi/hostfile", "a\n"}}));
  REQUIRE(run.ok());
  CHECK(run->hosts.at(0).slots == 4);
  CHECK(run->elastic->hostfile == "/etc/mpi/hostfile");
  CHECK(run->elastic->slots_per_host == 4);
}

TEST_CASE("hosts are waited for that an operator has only begun to start, or that a person says") {
  const auto of_operator = Plan({}, In({"OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile"},
                                       {{"/etc/mpi/hostfile", "a slots=1\n"}}));
  CHECK(of_operator->waits_for_hosts);
  CHECK_FALSE(Plan({}, In(kSlurm))->waits_for_hosts);
  CHECK(Plan({"-H", "a", "--start-timeout", "9"}, BoxWorld())->waits_for_hosts);
}

TEST_CASE("a shell that Slurm has not started has none of the job's limits, on its own node too") {
  const Files srun = {{"/bin/srun", ""}};
  Words variables = {"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=box,n2", "SLURM_TASKS_PER_NODE=1(x2)"};
  const auto salloc = Plan({}, In(variables, srun));
  REQUIRE(salloc.ok());
  CHECK(salloc->is_local == std::vector<bool>{false, false});
  CHECK_FALSE(salloc->is_local_host(salloc->hosts[0]));
  CHECK(Plan({}, In(variables))->is_local == std::vector<bool>{true, false});  // nor is there srun
  variables.emplace_back("SLURMD_NODENAME=box");
  CHECK(Plan({}, In(variables, srun))->is_local == std::vector<bool>{true, false});
}

TEST_CASE("without its manager's way ssh reaches the hosts, and that is said") {
  const auto run = Plan({}, In(kSlurm));
  REQUIRE(run.ok());
  CHECK(run->rsh_agent.empty());
  CHECK_THAT(run->hosts_note, Contains("reached by ssh: there is no srun"));
}

}  // namespace
}  // namespace hvd::cli
