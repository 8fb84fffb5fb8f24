# SPDX-License-Identifier: Apache-2.0
"""Saves a checkpoint when the job is about to be taken away, and goes on from it the next time.

    hvdrun -np 2 python examples/python/checkpoint_on_term.py /tmp/model.npz

Slurm and Kubernetes send TERM to hvdrun some 30 s before they kill it, and every rank gets it at
once. Collectives work on until a rank is gone, so the ranks can agree after which step they stop.
hvdrun then ends with 143: the job is not done.
"""
import argparse
import os
import pathlib
import signal

import numpy as np

import hvd

asked = False


def on_signal(number, frame):
    global asked
    asked = True  # and no more: the step that is under way comes to its end first


def save(path, weights, step):
    part = path.with_suffix(".part")
    with open(part, "wb") as file:
        np.savez(file, weights=weights, step=step)
    os.replace(part, path)  # whoever is killed in the middle leaves the older one whole


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=100000)
    arguments = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, on_signal)
    hvd.init()
    hvd.set_grace(25)  # that is how long saving may take; without it KILL comes 5 s after TERM

    weights, step = np.zeros(1000, np.float32), 0
    if hvd.rank() == 0 and arguments.checkpoint.exists():
        with np.load(arguments.checkpoint) as saved:
            weights, step = saved["weights"], int(saved["step"])
    weights, step = hvd.broadcast_object((weights, step), 0)
    print(f"rank {hvd.rank()} begins after step {step}", flush=True)

    while step < arguments.steps:
        gradient = np.random.default_rng(step * hvd.size() + hvd.rank()).random(1000, np.float32)
        weights -= 0.01 * hvd.allreduce(gradient, name="gradient")
        step += 1
        # One rank may hear of it a step before another: the largest of all flags is one for all.
        if hvd.allreduce(np.array([asked], np.int32), op=hvd.Max, name="asked")[0]:
            break
    if hvd.rank() == 0:
        save(arguments.checkpoint, weights, step)
    print(f"rank {hvd.rank()} stopped after step {step}", flush=True)


if __name__ == "__main__":
    main()
