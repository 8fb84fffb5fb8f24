# SPDX-License-Identifier: Apache-2.0
"""A small GPT learns to write like hvd's own documentation, letter by letter, in bfloat16.

    hvdrun -np 2 python examples/python/gpt.py --steps 200

The text is read from a file (--text), by default this project's READMEs. The forward pass runs
under autocast; gradients are float32, and travel in 16 bits with --fp16. Rank 0 shows the progress
and, at the end, some text.
"""
import argparse
import math
import pathlib
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

import hvd.torch as hvd

PROJECT = pathlib.Path(__file__).resolve().parents[2]


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width))

    def forward(self, x):
        parts = self.qkv(self.before_attention(x)).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.mlp(self.before_mlp(x))


class Gpt(nn.Module):
    def __init__(self, letters, width, depth, context):
        super().__init__()
        self.letter, self.place = nn.Embedding(letters, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, width // 32) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters)

    def forward(self, text):
        x = self.letter(text) + self.place(torch.arange(text.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def parse_arguments():
    parser = argparse.ArgumentParser(description="Trains a small GPT on letters.")
    parser.add_argument("--text", type=pathlib.Path, help="a file; default: this project's READMEs")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=16, help="pieces of text a step, of all ranks")
    parser.add_argument("--context", type=int, default=64, help="letters that are looked back")
    parser.add_argument("--width", type=int, default=128, help="a multiple of 32")
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--fp16", action="store_true", help="gradients travel in 16 bits")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def read_text(path):
    if path is not None:
        return path.read_text(encoding="utf-8")
    readmes = sorted(PROJECT.glob("*/README.md"))
    return "\n".join(readme.read_text(encoding="utf-8") for readme in readmes)


def pieces(text, arguments, step):
    """This rank's inputs and targets of a step: its share of the places that all ranks draw."""
    generator = torch.Generator().manual_seed(arguments.seed * 1_000_003 + step)
    last = len(text) - arguments.context - 1
    starts = torch.randint(last, (arguments.batch,), generator=generator)
    mine = starts[hvd.rank()::hvd.size()]
    rows = torch.stack([text[start:start + arguments.context + 1] for start in mine])
    return rows[:, :-1], rows[:, 1:]


def progress(done, steps, loss, seconds):
    """A line that is drawn anew on a terminal; elsewhere ten lines in all."""
    words = f"step {done}/{steps}  loss {loss:.4f}  {seconds / done * 1000:.0f} ms a step"
    if sys.stdout.isatty():
        bar = "#" * (30 * done // steps)
        print(f"\r[{bar:30}] {words}", end="\n" if done == steps else "", flush=True)
    elif done % math.ceil(steps / 10) == 0 or done == steps:
        print(words, flush=True)


@torch.no_grad()
def write(model, letters, text, count):
    made = text
    for _ in range(count):
        context = made[-model.place.num_embeddings:].unsqueeze(0)
        chances = F.softmax(model(context)[0, -1] / 0.7, 0)
        made = torch.cat([made, torch.multinomial(chances, 1)])
    return "".join(letters[int(code)] for code in made)


def main():
    arguments = parse_arguments()
    hvd.init()
    torch.set_num_threads(1)  # each rank has cores of its own
    if arguments.batch % hvd.size():
        sys.exit(f"--batch {arguments.batch} cannot be shared evenly by {hvd.size()} ranks")
    raw = read_text(arguments.text)
    letters = sorted(set(raw))
    codes = {letter: code for code, letter in enumerate(letters)}
    text = torch.tensor([codes[letter] for letter in raw])

    torch.manual_seed(arguments.seed)
    model = Gpt(len(letters), arguments.width, arguments.depth, arguments.context)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.AdamW(model.parameters(), lr=arguments.lr),
        named_parameters=model.named_parameters(),
        compression=hvd.Compression.fp16 if arguments.fp16 else hvd.Compression.none)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)

    began = time.monotonic()
    for step in range(arguments.steps):
        given, wanted = pieces(text, arguments, step)
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(given)
        loss = F.cross_entropy(logits.float().flatten(0, 1), wanted.flatten())
        loss.backward()
        optimizer.step()
        mean = hvd.allreduce(loss.detach(), name="loss").item()
        if hvd.rank() == 0:
            progress(step + 1, arguments.steps, mean, time.monotonic() - began)
    if hvd.rank() == 0:
        print(write(model, letters, text[:8], 200))
    hvd.shutdown()


if __name__ == "__main__":
    main()
