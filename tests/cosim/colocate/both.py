"""Two small networks on one accelerator, for tests."""

from dataclasses import replace
from functools import cache

import numpy as np
import torch
from torch import nn

from cosim.colocate.clients import Clients
from cosim.colocate.run import Both
from golden.lower.alone import Alone
from golden.lower.serving import lower_serving
from golden.lower.training.step import lower_step
from golden.perf.accelerator.colocate.plan import Plan
from hbfp.manifest import core_latency
from tests.cosim.accelerator.built import TWO

SYSTEM = replace(TWO, v_words=512, x_words=512, w_words=512, p_words=512, dispatch=16, dispatch_batch=4)
MEMORY = 20, SYSTEM.beat
BATCH = 4


class _Words(nn.Module):
    """Rows of a table, whose places the host writes into instructions, and a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.layer = nn.Embedding(9, 8), nn.Linear(8, 4)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """(N,) -> (N, 4)."""
        return self.layer(self.table(words))


def batches(words=False):
    """Batches of a training, each another."""
    rng = torch.Generator().manual_seed(5)
    while True:
        inputs = torch.randint(9, (4,), generator=rng) if words else torch.randn(4, 6, generator=rng)
        yield (inputs,), (torch.randn(4, 4, generator=rng),)


def sgd(parameters):
    """An optimiser with state."""
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


_latency = cache(core_latency)


def both(arrivals, *, words=False, train=True, quantum=1.0, timeout=2.0, rate=0.1, system=SYSTEM):
    """A linear layer that serves batches of four, and a small model that trains; ``words``: one with a table."""
    torch.manual_seed(7)
    serve, samples = nn.Linear(12, 5).eval(), torch.randn(11, 12)
    half = system.share(8)
    serving, step = lower_serving(serve, (samples[:BATCH],), half), None
    if train:
        model = _Words() if words else nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
        step = lower_step(model, nn.functional.mse_loss, sgd, next(batches(words)), half)
    plan = Plan.of(serving.batch_of(range(BATCH), BATCH), step and step.lowered.program, system,
                   _latency(system.core), MEMORY[0], system.beat, batch=BATCH, timeout=timeout, quantum=quantum)
    clients = Clients(serving, Alone(serve, half, (samples,)), len(arrivals))
    return Both(system, serving, clients, step, batches(words), plan, np.asarray(arrivals, np.int64))
