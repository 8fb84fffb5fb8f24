#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs what is missing, builds what it runs, and trains the same model on 1, 2 and 4 ranks: the same losses, each time.
Where there is a Python with torch it trains by that as well.

Usage: scripts/demo      exits 0 when the losses agree to 1e-3 and every accuracy is at least 0.95
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
BIN = REPOSITORY / "build" / "bin"
TARGETS = ("hvdrun", "hvdd", "train_digits")  # with libhvd, of course
RANKS = (1, 2, 4)
TOLERANCE = 1e-3
ACCURACY = 0.95


def train(np):
    """Trains on np ranks, showing the output as it comes; returns the last line's JSON."""
    command = [str(BIN / "hvdrun"), "-np", str(np), str(BIN / "train_digits"), "--json"]
    print(f"\n$ hvdrun -np {np} train_digits --json", flush=True)
    result = None
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as job:
        for line in job.stdout:
            text = line.split("<stdout>:", 1)[-1].strip()
            if text.startswith("{"):
                result = json.loads(text)
            else:
                print("  " + line.rstrip(), flush=True)
    if job.returncode != 0 or result is None:
        sys.exit(f"scripts/demo: training on {np} ranks ended with exit code {job.returncode}")
    return result


def python_with_torch():
    """The interpreter of scripts/setup --python, or the user's own, if it can run the examples; else None."""
    for name in (str(REPOSITORY / ".cache" / "python" / "bin" / "python"), "python3", "python"):
        found = shutil.which(name)
        if found and subprocess.run([found, "-c", "import numpy, torch"], capture_output=True).returncode == 0:
            return found
    return None


def train_in_python(python):
    """Whether the same digits can be learnt from Python too."""
    example = REPOSITORY / "examples" / "python" / "torch_digits.py"
    print("\n$ hvdrun -np 2 python examples/python/torch_digits.py --epochs 3", flush=True)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "python")}
    job = subprocess.run([BIN / "hvdrun", "-np", "2", python, example, "--epochs", "3"], stdin=subprocess.DEVNULL, env=environment)
    return job.returncode == 0


def worst_difference(results):
    return max(max(losses) - min(losses) for losses in zip(*(r["losses"] for r in results)))


def main():
    print(f"Building {', '.join(TARGETS[:-1])} and {TARGETS[-1]} (some minutes the first time) …", flush=True)
    began = time.monotonic()
    if subprocess.run([REPOSITORY / "scripts" / "build", "--", *TARGETS]).returncode != 0:
        return 1
    print(f"built in {time.monotonic() - began:.0f} s", flush=True)
    results = [train(np) for np in RANKS]
    difference = worst_difference(results)
    print("\nranks   last loss   test accuracy")
    for result in results:
        print(f"{result['np']:5}   {result['losses'][-1]:9.6f}   {result['test_accuracy']:13.4f}")
    agree = difference <= TOLERANCE
    accurate = all(result["test_accuracy"] >= ACCURACY for result in results)
    print(f"\nThe losses of all epochs differ by {difference:.1e} at most ({'agree' if agree else 'DISAGREE'}); "
          f"every accuracy is {'at least' if accurate else 'NOT at least'} {ACCURACY}.")
    if not (agree and accurate):
        return 1
    python = python_with_torch()
    if python is None:
        print("\nThere is no Python with torch here, so Python's examples (examples/python) were not run.")
        return 0
    return 0 if train_in_python(python) else 1


if __name__ == "__main__":
    sys.exit(main())
