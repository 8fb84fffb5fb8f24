# SPDX-License-Identifier: Apache-2.0
"""Checks what type checkers make of programs that use hvd.torch."""
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("mypy")

import hvd  # noqa: E402

PROGRAM = """
import torch
import hvd.torch as hvd

model = torch.nn.Linear(1, 1)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
reveal_type(optimizer)
plain: torch.optim.Optimizer = optimizer
optimizer.synchronize()
with optimizer.skip_synchronize():
    optimizer.step()
reveal_type(optimizer.backward_passes_per_step)
reveal_type(hvd.broadcast_object("words", 0))
reveal_type(hvd.allgather_object(1.5))

rows = torch.ones(2)
reveal_type(hvd.allreduce_async(rows))
reveal_type(hvd.synchronize(hvd.grouped_allreduce_async([rows])))
reveal_type(hvd.alltoall(rows))
reveal_type(hvd.alltoall(rows, [1, 1]))

@hvd.elastic.run
def train(state: hvd.elastic.State, steps: int) -> str:
    return "done"

reveal_type(train(hvd.elastic.TorchState(model, batch=0), steps=3))
"""
TENSOR = "torch._tensor.Tensor"
REVEALED = [
    "hvd.torch.optimizer.ReducingOptimizer", "int", "str", "list[float]",
    f"hvd._core.handles.Handle[{TENSOR}]", f"list[{TENSOR}]", TENSOR, f"tuple[{TENSOR}, {TENSOR}]",
    "str"]


def test_types_are_revealed(rank, tmp_path):
    if rank != 0:
        return
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    package = pathlib.Path(hvd.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", tmp_path / "cache", "--follow-imports",
         "silent", "--hide-error-context", program],
        env={"MYPYPATH": str(package), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True,
        timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    revealed = re.findall(r'Revealed type is "(.*)"', done.stdout)
    assert [one.replace("builtins.", "") for one in revealed] == REVEALED
