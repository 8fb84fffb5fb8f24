# SPDX-License-Identifier: Apache-2.0
"""Python: what a call costs beside the C ABI's, a training step beside DDP and FSDP2 over gloo, and JAX's compiled sums."""
import os
import pathlib

from sections import sides

PYTHON = sides.REPOSITORY / ".cache" / "python" / "bin" / "python"
# The most microseconds that a call from Python takes beside the same one in C, and a step's gradients of one element each.
MOST_US, MOST_TOGETHER_US = 3, 700


def two_ranks(program, rounds):
    """Returns the program's results, of which it prints a line of JSON each."""
    paths = (sides.REPOSITORY / "python", sides.REPOSITORY / "examples" / "python")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONWARNINGS": "ignore"}
    output = sides.run([sides.BIN / "hvdrun", "-np", "2", PYTHON, pathlib.Path(sides.SOURCES) / program, rounds], env=environment)
    return [result for result in sides.results_in(output) if "case" in result]


def jax(report, rounds):
    """Sums in chains within compiled programs (np=2), by hvd and by jaxlib's gloo, by turns in one run."""
    sides.run([sides.REPOSITORY / "scripts" / "setup", "--python"])
    for result in two_ranks("jax_chain.py", rounds):
        report.result(result)
        report.note(f"{result['bytes']:>10} bytes: hvd {result['us_hvd']:>10.1f} us, gloo {result['us_gloo']:>10.1f} us")
        if result["bytes"] >= 64 << 10:
            report.at_least(f"jax, {result['bytes']} bytes: times as fast as gloo's", result["ratio"], 5)


def python(report, rounds):
    """Python's calls, and a training step of ResNet-50's shape (np=2, 4 images of 32 x 32 a rank), by turns in one run."""
    sides.run([sides.REPOSITORY / "scripts" / "setup", "--python"])
    in_c = sides.results_in(sides.run([sides.BIN / "hvdrun", "-np", "2", sides.BIN / "hvd-bench", "allreduce", "--sizes", "4", "--json"]))
    us = {result["case"]: result["us"] for result in two_ranks("python_step.py", rounds)}
    for case, value in us.items():
        report.result({"case": case, "us": value})
        report.note(f"{case:<20}{value:>12.1f} us")
    report.at_most("python, 4 bytes, blocking: us more than in C", us["blocking"] - in_c[0]["us_p50"], MOST_US, "us")
    report.at_most("python, 161 calls and waits", us["async"], MOST_TOGETHER_US, "us")
    local = us["step: local"]
    report.at_most("training step, DistributedOptimizer: share of DDP's over gloo", us["step: hvd optimizer"] / us["step: DDP gloo"], 0.85)
    report.at_least("communication of a step's gradients: times as fast as gloo's", us["gradients: gloo"] / us["gradients: hvd"], 4)
    over = {name: max(us[f"step: {name}"] - local, 1) for name in ("DDP gloo", "DDP hvd")}
    report.at_least("a step beyond the local one, DDP over gloo: times as long as DDP on hvd", over["DDP gloo"] / over["DDP hvd"], 2.5)
    report.at_least("training step, FSDP2 on hvd: times as fast as on gloo", us["step: FSDP2 gloo"] / us["step: FSDP2 hvd"], 2)
