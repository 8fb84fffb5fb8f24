# SPDX-License-Identifier: Apache-2.0
"""TensorFlow: what an op costs in a graph, and a step's gradients beside hvd-bench's."""
import os
import pathlib

from sections import sides
from sections.python_faces import PYTHON

MOST_US = 12


def tensorflow(report, rounds):
    """Ops in TensorFlow's graphs (np=2), beside numpy_function in the same run, and hvd-bench's gradients by turns."""
    sides.run([sides.REPOSITORY / "scripts" / "setup", "--python"])
    environment = {**os.environ, "PYTHONPATH": str(sides.REPOSITORY / "python"), "TF_CPP_MIN_LOG_LEVEL": "3"}
    step = [sides.BIN / "hvdrun", "-np", "2", PYTHON, pathlib.Path(sides.SOURCES) / "tensorflow_step.py"]
    in_c, found = [], {}
    for _ in range(rounds):
        in_c += sides.results_in(sides.hvd(2, "gradients")())
        for result in sides.results_in(sides.run([*step, 1], env=environment)):
            if "case" in result:
                found.setdefault(result["case"], []).append(result["us"])
    us = {case: sorted(values)[len(values) // 2] for case, values in found.items()}
    for case, value in us.items():
        report.result({"case": case, "us": value})
        report.note(f"{case:<28}{value:>12.1f} us")
    report.at_most("tensorflow, an op in a chain", us["chain: op"], MOST_US, "us")
    report.at_least("tensorflow, an op in a chain: times as fast as numpy_function", us["chain: numpy_function"] / us["chain: op"], 3)
    base = sorted(result["us_p50"] for result in in_c)[len(in_c) // 2]
    report.at_most("tensorflow, 161 gradients: share of hvd-bench's time", us["gradients: op"] / base, 1.3)
