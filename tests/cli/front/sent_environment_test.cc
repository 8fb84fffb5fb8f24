// SPDX-License-Identifier: Apache-2.0
#include "cli/front/sent_environment.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_join.h"

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;
using Words = std::vector<std::string>;

// "environment | own" or the error.
std::string Chosen(const Words& inherited, const Words& wishes = {}) {
  const auto chosen = ChooseEnvironment(inherited, wishes);
  if (!chosen.ok()) return std::string(chosen.status().message());
  return absl::StrJoin(chosen->environment, " ") + " | " + absl::StrJoin(chosen->own, " ");
}

TEST_CASE("what belongs to a host or a login stays there") {
  CHECK(Chosen({"PATH=/bin", "HOME=/h", "USER=u", "LOGNAME=u", "SHELL=/bin/sh",
                "XDG_RUNTIME_DIR=/r", "SSH_AUTH_SOCK=/s", "SSH_TTY=/t", "TMPDIR=/t", "DISPLAY=:0",
                "HOSTNAME=box", "OLDPWD=/", "LANG=C", "TERM=xterm"}) ==
        "LANG=C PATH=/bin TERM=xterm | ");
  CHECK(Chosen({"HOMEBREW=1", "MY_SSH_KEY=2"}) == "HOMEBREW=1 MY_SSH_KEY=2 | ");
}

TEST_CASE("who a process is in some launcher's eyes is not passed on, settings are") {
  CHECK(Chosen({"HVD_LINK=3",
                "HVD_RANK=1",
                "HVD_JOB_MARK=x",
                "HVD_HOSTFILE=f",
                "HVD_PYTHON=/x/python",
                "HVD_CUDA_VISIBLE_DEVICES=0",
                "HOROVOD_RANK=1",
                "RANK=1",
                "WORLD_SIZE=2",
                "LOCAL_RANK=0",
                "LOCAL_WORLD_SIZE=1",
                "PMI_RANK=1",
                "GROUP_RANK=1",
                "ROLE_RANK=1",
                "TORCHELASTIC_RUN_ID=x",
                "PMIX_ID=x",
                "OMPI_COMM_WORLD_RANK=1",
                "SLURM_PROCID=3",
                "SLURM_JOB_ID=7",
                "HVD_LOG_LEVEL=debug",
                "HOROVOD_TIMELINE=t",
                "OMPI_MCA_btl=x",
                "NCCL_DEBUG=INFO"}) ==
        "HOROVOD_TIMELINE=t HVD_LOG_LEVEL=debug NCCL_DEBUG=INFO OMPI_MCA_btl=x SLURM_JOB_ID=7 | ");
}

TEST_CASE("a master that the user has named is passed on, an outer job's is not") {
  CHECK(Chosen({"MASTER_ADDR=10.0.0.1", "MASTER_PORT=4000"}) ==
        "MASTER_ADDR=10.0.0.1 MASTER_PORT=4000 | ");
  CHECK(Chosen({"HVD_JOB_MARK=x", "MASTER_ADDR=host0"}) == " | ");
  CHECK(Chosen({"HVD_JOB_MARK=x", "MASTER_ADDR=host0"}, {"MASTER_ADDR"}) ==
        "MASTER_ADDR=host0 | MASTER_ADDR");
}

TEST_CASE("values pass unchanged, whatever they hold") {
  CHECK(Chosen({"A=x=y", "B=", "C=a b\n'\"$", "noequals", "=odd", "A=second"}) ==
        "A=x=y B= C=a b\n'\"$ | ");
  CHECK(Chosen({"BASH_FUNC_ml%%=() { x; }"}) == "BASH_FUNC_ml%%=() { x; } | ");
}

TEST_CASE("-x gives a variable whatever the host says") {
  CHECK(Chosen({"HOME=/h", "A=1"}, {"HOME"}) == "A=1 HOME=/h | HOME");
  CHECK(Chosen({"A=1"}, {"A=2"}) == "A=2 | A");
  CHECK(Chosen({"A=1"}, {"B="}) == "A=1 B= | B");
  CHECK(Chosen({}, {"A=1", "A=x=y"}) == "A=x=y | A");
}

TEST_CASE("-x takes globs") {
  CHECK(Chosen({"SSH_A=1", "SSH_B=2", "C=3"}, {"SSH_*"}) == "C=3 SSH_A=1 SSH_B=2 | SSH_A SSH_B");
  CHECK(Chosen({"A1=1", "A22=2"}, {"A?"}) == "A1=1 A22=2 | A1");
  CHECK(Chosen({"A=1"}, {"NONE*"}) == "A=1 | ");
  CHECK(Chosen({"HVD_LINK=3", "HVD_X=1"}, {"HVD_*"}) == "HVD_X=1 | HVD_X");
  CHECK(Chosen({}, {"A=*"}) == "A=* | A");
}

TEST_CASE("-x that cannot be meant is refused") {
  CHECK(Chosen({}, {"A"}) == "-x A: it is not set here; write -x A=VALUE");
  CHECK_THAT(Chosen({}, {"=1"}), Contains("\"\" is not a variable's name"));
  CHECK_THAT(Chosen({}, {"A B=1"}), Contains("is not a variable's name"));
  CHECK(Chosen({}, {"RANK=1"}) == "-x RANK: hvdrun gives each worker its own RANK");
  CHECK_THAT(Chosen({"HVD_LINK=1"}, {"HVD_LINK"}), Contains("gives each worker its own"));
}

}  // namespace
}  // namespace hvd::cli
