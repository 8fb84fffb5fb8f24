# SPDX-License-Identifier: Apache-2.0
"""The handwritten digits as NumPy's arrays, which the examples of several frameworks train on."""
import gzip
import pathlib

import numpy as np

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "digits.csv.gz"
TRAIN = 1536  # the first of them; divides by 1, 2, 3, 4, 6, 8, … ranks


def load_digits(seed):
    """(8×8 pixels from 0 to 1, digits), shuffled alike on all ranks."""
    with gzip.open(DATA, "rt") as file:
        rows = np.loadtxt(file, delimiter=",", dtype=np.float32)
    rows = np.random.default_rng(seed).permutation(rows)
    return rows[:, :64] / 16, rows[:, 64].astype(np.int32)
