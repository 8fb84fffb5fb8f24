# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer with op=Adasum."""
import pytest

torch = pytest.importorskip("torch")
from training import sgd  # noqa: E402

import hvd.torch as hvd  # noqa: E402


def test_adasum(rank, size):
    """Ranks whose steps are the same take that step; orthogonal ones are added."""
    for orthogonal in (False, True):
        model = torch.nn.Linear(size, 1, bias=False)
        torch.nn.init.zeros_(model.weight)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0),
                                             model.named_parameters(), op=hvd.Adasum)
        x = torch.zeros(1, size)
        x[0, rank if orthogonal else 0] = 1.0
        for step in range(2):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
            expected = torch.zeros(1, size)
            expected[0, :size if orthogonal else 1] = -(step + 1.0)
            assert torch.allclose(model.weight, expected, atol=1e-5), model.weight
        if size > 1:
            with pytest.raises(AssertionError, match="Adasum"), optimizer.skip_synchronize():
                pass
            optimizer.synchronize()
            assert optimizer.backward_passes_per_step == 1
            with pytest.raises(ValueError, match="groups"):
                hvd.DistributedOptimizer(sgd(model.parameters()), op=hvd.Adasum, groups=2)
    hvd.barrier()


def test_adasum_counts_passes(rank, size, several):
    model = torch.nn.Linear(1, 1, bias=False)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0),
                                         op=hvd.Adasum, backward_passes_per_step=2)
    for _ in range(2):
        model(torch.ones(1, 1)).sum().backward()
    with pytest.raises(AssertionError, match="backward_passes_per_step"):
        model(torch.ones(1, 1)).sum().backward()
    optimizer.step()
