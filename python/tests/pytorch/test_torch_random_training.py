# SPDX-License-Identifier: Apache-2.0
"""Training in which ranks differ in what they may differ in, against one process.

A plan, the same on all ranks, says what each rank does in each step. Each rank also plays all of
them in one process: with a plain optimizer, whose gradients are averages.
"""
import os
import random
import warnings

import pytest

torch = pytest.importorskip("torch")
from torch.nn import functional as F  # noqa: E402

import hvd.torch as hvd  # noqa: E402

SEEDS = int(os.environ.get("HVD_TEST_SEEDS", "16"))
STEPS = 9
SHAPES = {"a": (3, 2), "b": (5,), "c": (), "d": (2, 3, 2), "e": (7, 1), "idle": (4,), "later": (3,),
          "words": (6, 2), "more words": (5, 3)}
WORDS = ("words", "more words")
# Sparse gradients go with neither.
PLAIN = {"momentum": 0.0, "weight_decay": 0.0}


def parameters():
    generator = torch.Generator().manual_seed(7)
    return {name: torch.nn.Parameter(torch.randn(shape, generator=generator, dtype=torch.float64))
            for name, shape in SHAPES.items()}


class Move:
    """A rank's part in a step."""

    def __init__(self, dice, plan):
        self.passes = dice.randint(0, plan.passes) if dice.random() < 0.3 else plan.passes
        likely = dice.choice([0.2, 0.6, 1.0])
        self.used = [{name: dice.choice(["dense", "sparse"] if plan.mixes else ["sparse"])
                      for name in SHAPES if name != "idle" and dice.random() < likely}
                     for _ in range(self.passes)]
        self.frozen = {name for name in SHAPES if dice.random() < plan.frozen}
        self.seed = dice.random()


class Plan:
    """All moves, and what all ranks do alike."""

    def __init__(self, seed, size):
        dice = random.Random(seed)
        self.passes = dice.choice([1, 1, 2])
        self.mixes = dice.random() < 0.4
        self.frozen = dice.choice([0.0, 0.1, 0.5])
        self.adam = dice.random() < 0.3
        self.groups = dice.choice([None, None, None, 2, 3, [["a", "b"], ["e", "idle", "d"]]])
        self.as_dense = self.adam or dice.random() < 0.2
        self.orders = [dice.sample(list(SHAPES), len(SHAPES)) for _ in range(size)]
        self.comes_later = dice.randrange(STEPS) if dice.random() < 0.5 else None
        self.comes_within = dice.random() < 0.3
        self.names_it = dice.random() < 0.7
        # How many steps each rank takes of those between two joins. One takes all.
        self.joins = [[STEPS] * size]
        if dice.random() < 0.5:
            first = dice.randint(1, STEPS - 1)
            for length in (first, STEPS - first):
                row = [dice.randint(0, length) for _ in range(size)]
                row[dice.randrange(size)] = length
                self.joins.append(row)
            del self.joins[0]
            self.comes_later = None
        self.ends = [dice.choice(["step", "step", "step", "closure", "clip", "skip"])
                     for _ in range(STEPS)]
        self.zero = [dice.choice(["none", "none", "zeros", "keep"]) for _ in range(STEPS)]
        self.moves = [[Move(dice, self) for _ in range(size)] for _ in range(STEPS)]

    def optimizer(self, params, order):
        words = [params[name] for name in order if name in WORDS]
        rest = [params[name] for name in order if name not in WORDS
                and (name != "later" or self.comes_later is None)]
        if self.adam:
            return torch.optim.Adam([{"params": rest}, {"params": words}], lr=0.05,
                                    weight_decay=0.01)
        return torch.optim.SGD([{"params": rest}, {"params": words, **PLAIN}], lr=0.05,
                               momentum=0.8, weight_decay=0.1)


def loss_of(params, used, frozen, seed):
    dice = torch.Generator().manual_seed(int(seed * 2**40))
    loss = torch.zeros((), dtype=torch.float64)
    for name in sorted(SHAPES):
        p = params[name]
        factor = torch.randn(p.shape, generator=dice, dtype=torch.float64)
        index = torch.randint(p.shape[0] if p.dim() else 1, (3,), generator=dice)
        if name in used and name not in frozen:
            if name in WORDS:
                found = F.embedding(index, p, sparse=used[name] == "sparse")
                loss = loss + (found * (1 + factor[:1])).sin().sum()
            else:
                loss = loss + (p * factor).sin().sum()
    return loss


class Alone:
    """All ranks in one process."""

    def __init__(self, plan, size):
        self.plan, self.size = plan, size
        self.params = parameters()
        self.optimizer = plan.optimizer(self.params, list(SHAPES))
        self.local = [dict.fromkeys(SHAPES) for _ in range(size)]

    def step(self, number, active):
        plan = self.plan
        for rank in active:
            move = plan.moves[number][rank]
            if plan.zero[number] != "keep":
                self._zero(rank, plan.zero[number])
            for used in move.used:
                self._backward(rank, used, move)
        if plan.comes_later == number and plan.comes_within:
            self.add_later()
        here = self._here()
        for name, p in self.params.items():
            p.grad = self._average(name, active) if name in here else None
        if plan.ends[number] == "clip":
            clip(self.optimizer)
        if plan.ends[number] != "skip":
            self.optimizer.step()
        for rank in active:
            for name in here:
                grad = self.params[name].grad
                self.local[rank][name] = None if grad is None else grad.clone()

    def _here(self):
        ids = {id(p) for group in self.optimizer.param_groups for p in group["params"]}
        return [name for name, p in self.params.items() if id(p) in ids]

    def _zero(self, rank, how):
        for name in self._here():
            old = self.local[rank][name]
            self.local[rank][name] = None if how == "none" or old is None else old * 0

    def _backward(self, rank, used, move):
        loss = loss_of(self.params, used, move.frozen, move.seed)
        if not loss.requires_grad:
            return
        for p in self.params.values():
            p.grad = None
        loss.backward()
        for name, p in self.params.items():
            if p.grad is not None:
                grad = p.grad.to_dense() if self.plan.as_dense else p.grad
                old = self.local[rank][name]
                self.local[rank][name] = grad if old is None else add(old, grad)

    def _average(self, name, active):
        there = [self.local[rank][name] for rank in active if self.local[rank][name] is not None]
        if not there:
            return None
        total = there[0].clone()
        for one in there[1:]:
            total = add(total, one)
        return total / self.size

    def add_later(self):
        self.optimizer.add_param_group({"params": [self.params["later"]]})


def add(one, other):
    if one.is_sparse and not other.is_sparse:
        return other + one
    return one + other


def clip(optimizer):
    for group in optimizer.param_groups:
        for p in group["params"]:
            if p.grad is not None:
                p.grad.mul_(0.5)


class Together:
    """This rank's part."""

    def __init__(self, plan, rank):
        self.plan, self.rank = plan, rank
        self.params = parameters()
        for name in plan.moves[0][rank].frozen:
            self.params[name].requires_grad_(False)
        order = plan.orders[rank]
        groups = plan.groups
        if isinstance(groups, list):
            groups = [[self.params[name] for name in group] for group in groups]
        inner = plan.optimizer(self.params, order)
        named = [(name, self.params[name]) for name in order
                 if name != "later" or plan.comes_later is None or plan.names_it]
        self.optimizer = hvd.DistributedOptimizer(
            inner, named, groups=groups, sparse_as_dense=plan.as_dense,
            backward_passes_per_step=plan.passes)

    def step(self, number):
        plan, move = self.plan, self.plan.moves[number][self.rank]
        for name, p in self.params.items():
            p.requires_grad_(name not in move.frozen)
        if plan.ends[number] == "closure":
            self.optimizer.step(lambda: self._backward(number, move))
            return
        self._backward(number, move)
        if plan.ends[number] == "step":
            self.optimizer.step()
            return
        self.optimizer.synchronize()
        if plan.ends[number] == "clip":
            clip(self.optimizer)
            with self.optimizer.skip_synchronize():
                self.optimizer.step()

    def _backward(self, number, move):
        if self.plan.zero[number] != "keep":
            self.optimizer.zero_grad(set_to_none=self.plan.zero[number] == "none")
        for used in move.used:
            loss = loss_of(self.params, used, move.frozen, move.seed)
            if loss.requires_grad:
                loss.backward()
        if self.plan.comes_later == number and self.plan.comes_within:
            self.add_later()

    def add_later(self):
        self.optimizer.add_param_group({"params": [self.params["later"]]})


def same(together, alone, what):
    for name, p in together.params.items():
        q = alone.params[name]
        assert torch.allclose(p.detach(), q.detach(), rtol=1e-9, atol=1e-9), (what, name, p, q)
        if name == "later" and together.plan.comes_later is not None:
            continue
        assert (p.grad is None) == (q.grad is None), (what, name, p.grad, q.grad)
        if p.grad is not None:
            one, other = (g.to_dense() for g in (p.grad, q.grad))
            assert torch.allclose(one, other, rtol=1e-9, atol=1e-9), (what, name, one, other)


def level(together, root):
    """After a join: those that had fewer steps get what they lack."""
    hvd.broadcast_parameters({name: p.detach() for name, p in together.params.items()}, root)
    order = hvd.broadcast_object(together.plan.orders[hvd.rank()], root)
    states = {name: together.optimizer.state.get(p) for name, p in together.params.items()}
    for name, state in hvd.broadcast_object(states, root).items():
        if state is None:
            together.optimizer.state.pop(together.params[name], None)
        else:
            together.optimizer.state[together.params[name]] = state
    assert sorted(order) == sorted(SHAPES)
    for p in together.params.values():
        p.grad = None


@pytest.mark.parametrize("seed", range(SEEDS))
def test_ranks_that_differ(rank, size, several, seed):
    plan = Plan(seed, size)
    alone, together = Alone(plan, size), Together(plan, rank)
    number = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a step after a skipped one
        for row in plan.joins:
            for at in range(max(row)):
                active = [r for r in range(size) if at < row[r]]
                before = plan.comes_later == number and not plan.comes_within
                if before:
                    alone.add_later()
                    together.add_later()
                alone.step(number, active)
                if rank in active:
                    together.step(number)
                    same(together, alone, (seed, number))
                number += 1
            if len(plan.joins) > 1:
                level(together, hvd.join())
                for local in alone.local:
                    local.update(dict.fromkeys(SHAPES))
                for p in alone.params.values():
                    p.grad = None
    bits = [p.detach().numpy().tobytes() for p in together.params.values()]
    assert hvd.allgather_object(bits) == [bits] * size
