"""Training on two processes: torch.distributed over gloo, nothing of our own."""

import os

import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402


def network():
    torch.manual_seed(1)
    return gn.convert(torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)),
                      gn.HBFPFormat(mantissa=8, block=(1, 8)))


def batch(rank):
    generator = torch.Generator().manual_seed(rank)
    return torch.randn(8, 16, generator=generator), torch.randn(8, 4, generator=generator)


def worker(rank, folder):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    net = torch.nn.parallel.DistributedDataParallel(network())
    optimiser = torch.optim.SGD(net.parameters(), 0.1)
    x, t = batch(rank)
    for _ in range(3):
        optimiser.zero_grad()
        (net(x) - t).square().mean().backward()
        optimiser.step()
    torch.save(net.module.state_dict(), os.path.join(folder, f"{rank}.pt"))
    torch.distributed.destroy_process_group()


def test_two_processes_equal_the_mean_of_two_gradients(tmp_path):
    torch.multiprocessing.spawn(worker, (str(tmp_path),), nprocs=2)
    nets = [network() for _ in range(2)]
    for _ in range(3):
        for rank, net in enumerate(nets):
            net.zero_grad()
            x, t = batch(rank)
            (net(x) - t).square().mean().backward()
        with torch.no_grad():
            for a, b in zip(*(net.parameters() for net in nets), strict=True):
                step = (a.grad + b.grad) / 2 * 0.1
                a -= step
                b -= step
    results = [torch.load(tmp_path / f"{rank}.pt") for rank in range(2)]
    for name, want in nets[0].state_dict().items():
        assert torch.equal(results[0][name], results[1][name])
        # The all-reduce may add 0.1 * g in one rounding less: a last place of the weights.
        assert torch.allclose(results[0][name], want, rtol=1e-6, atol=1e-7)
