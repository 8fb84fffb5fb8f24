# SPDX-License-Identifier: Apache-2.0
"""The handwritten digits and the small network that the examples train."""
import gzip
import pathlib

import torch
from torch.utils.data import TensorDataset

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "digits.csv.gz"


def load_digits(seed):
    """(training set, test set): 8×8 pixels from 0 to 1, and the digit. The same on all ranks."""
    with gzip.open(DATA, "rt") as file:
        rows = torch.tensor([[float(cell) for cell in line.split(",")] for line in file])
    rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))]
    pixels, digits = rows[:, :64] / 16, rows[:, 64].long()
    train = 1536  # divides by 1, 2, 3, 4, 6, 8, … ranks
    return (TensorDataset(pixels[:train], digits[:train]),
            TensorDataset(pixels[train:], digits[train:]))


def choose_device(asked, local_rank):
    """`asked`: "cpu", "cuda", or None: a GPU where there is one. It becomes the current one.

    hvdrun shows each rank its host's GPUs so that the local rank is the index of its own; with
    --gpus-per-rank it shows a rank its own alone, which begin at 0; and ranks share GPUs where
    there are fewer. The remainder of the local rank is right in each case."""
    if asked == "cpu" or (asked is None and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise SystemExit("--device cuda: torch sees no GPU here; --device cpu does without")
    torch.cuda.set_device(local_rank % torch.cuda.device_count())
    return torch.device("cuda", torch.cuda.current_device())


def make_network(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
