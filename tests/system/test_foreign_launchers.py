# SPDX-License-Identifier: Apache-2.0
"""Ranks that another launcher has started are no jobs of one rank each."""
import world
from world import BIN

SEVERAL = {
    "mpirun": {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "0"},
    "mpiexec": {"PMI_SIZE": "4", "PMI_RANK": "3"},
    "srun": {"SLURM_STEP_ID": "0", "SLURM_NTASKS": "4"},
    "torchrun": {"WORLD_SIZE": "4", "RANK": "2"},
}


def test_one_of_several_is_refused_with_the_next_step():
    with world.hosts() as here:
        for launcher, variables in SEVERAL.items():
            refused = here.run(BIN / "hello", env=variables)
            assert refused.code != 0 and "rank 0 of 1" not in refused.out, refused
            assert f"{launcher}" in refused.err and "hvdrun -np 4 PROGRAM" in refused.err, refused
            here.run(BIN / "hello", env={**variables, "HVD_STANDALONE": "1"}).must(0)
        here.must_be_clean()


def test_hvdrun_makes_a_job_within_whatever_launcher():
    with world.hosts() as here:
        for variables in SEVERAL.values():
            here.hvdrun("-np", 2, BIN / "hello", env=variables).must(2, "has started hvdrun several times")
            job = here.hvdrun("-np", 2, BIN / "hello", env={**variables, "HVD_STANDALONE": "1"}).must(0)
            assert job.out.count("of 2 (") == 2, job
        here.must_be_clean()
