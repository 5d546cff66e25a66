"""Training on two processes: torch.distributed over gloo, nothing of our own. The bits are those of one process."""

import gc
import os

import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("torch without torch.distributed", allow_module_level=True)

from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard  # noqa: E402

import golden.nn as gn  # noqa: E402
from tests.cases import sweep  # noqa: E402

RANKS, STEPS = 2, 3
FORMATS = {"rows": gn.HBFPFormat(mantissa=8, block=(1, 8)), "tiles": gn.HBFPFormat(mantissa=6, block=(8, 8)),
           "noise": gn.HBFPFormat(mantissa=5, block=(1, 8), rounding="stochastic")}


class Net(torch.nn.Module):
    """Layers of every kind that has weights, and a product of its own code."""

    def __init__(self):
        super().__init__()
        self.conv, self.rows = torch.nn.Conv2d(2, 8, 3), torch.nn.Linear(8, 16)
        self.attention = torch.nn.MultiheadAttention(16, 2, batch_first=True)
        self.out = torch.nn.Linear(16, 4)

    def forward(self, x):
        y = self.rows(self.conv(x).flatten(2).mT)
        y = self.attention(y, y, y)[0]
        return self.out(y @ y.mT @ y).sum(1)


def network(fmt):
    torch.manual_seed(1)
    return gn.convert(Net(), fmt)


def batch(rank):
    generator = torch.Generator().manual_seed(rank)
    return torch.randn(4, 2, 5, 5, generator=generator), torch.randn(4, 4, generator=generator)


def sharded(net):
    """FSDP of torch 2: each layer by itself, then the rest."""
    mesh = init_device_mesh("cpu", (RANKS,))
    for part in (net.conv, net.rows, net.attention, net.out, net):
        fully_shard(part, mesh=mesh)
    return net


WRAPPERS = {
    "ddp": torch.nn.parallel.DistributedDataParallel,
    "fsdp": lambda net: FullyShardedDataParallel(net, device_id=torch.device("cpu"), use_orig_params=True),
    "fsdp2": sharded}


def whole(net):
    """All parameters, wherever they lie."""
    if isinstance(net, FullyShardedDataParallel):
        with FullyShardedDataParallel.summon_full_params(net):
            return {name.replace("_fsdp_wrapped_module.", ""): p.detach().clone() for name, p in net.named_parameters()}
    return {name.removeprefix("module."): getattr(p.detach(), "full_tensor", p.detach().clone)()
            for name, p in net.named_parameters()}


#: Formats and wrappers: each once, or all of them with each other.
PAIRS = [list(zip(FORMATS, WRAPPERS, strict=True)), [(name, kind) for name in FORMATS for kind in WRAPPERS]]


def worker(rank, folder, pairs):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=RANKS)
    x, t = batch(rank)
    found = {}
    for name, kind in pairs:
        net = WRAPPERS[kind](network(FORMATS[name]))
        optimiser = torch.optim.Adam(net.parameters(), 0.01)
        for _ in range(STEPS):
            optimiser.zero_grad()
            (net(x) - t).square().mean().backward()
            optimiser.step()
        found[name, kind] = whole(net)
    torch.save(found, os.path.join(folder, f"{rank}.pt"))
    # What holds the group goes first, so that its threads end with it: one that lets go of a NumPy array's memory while
    # Python ends would end the process.
    del net, optimiser
    gc.collect()
    torch.distributed.destroy_process_group()


def alone(fmt):
    """The same in one process: each rank's gradients, and steps with their mean."""
    nets = [network(fmt) for _ in range(RANKS)]
    optimisers = [torch.optim.Adam(net.parameters(), 0.01) for net in nets]
    for _ in range(STEPS):
        for rank, (net, optimiser) in enumerate(zip(nets, optimisers, strict=True)):
            optimiser.zero_grad()
            x, t = batch(rank)
            (net(x) - t).square().mean().backward()
        for peers in zip(*(net.parameters() for net in nets), strict=True):
            mean = (peers[0].grad + peers[1].grad) / 2
            for p in peers:
                p.grad = mean
        for optimiser in optimisers:
            optimiser.step()
    return dict(nets[0].named_parameters())


@pytest.mark.parametrize("pairs", sweep(2, PAIRS), ids=["each once", "all"])
def test_two_processes_have_the_bits_of_one(tmp_path, pairs):
    """The mean of two gradients has one rounding, in whatever order; all else is the law."""
    torch.multiprocessing.spawn(worker, (str(tmp_path), pairs), nprocs=RANKS)
    results = [torch.load(tmp_path / f"{rank}.pt") for rank in range(RANKS)]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for name, fmt in FORMATS.items():
            want = alone(fmt)
            for kind in (kind for own, kind in pairs if own == name):
                for found in results:
                    assert found[name, kind].keys() == want.keys(), (name, kind)
                    for part, value in want.items():
                        assert torch.equal(found[name, kind][part], value), (name, kind, part)
    finally:
        torch.set_num_threads(threads)
