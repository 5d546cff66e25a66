"""Speed of the golden model: conversion, products, training steps; ratios side by side in one run.

    python -m benchmarks.golden_speed [conversion] [matmul] [step] [fused] [--repeat 15] [--threads 1 2]

Each figure is the best of --repeat rounds in which both sides take turns: with one thread in processor time, so
that other load on the machine counts little, with more in wall time, so that it counts.
"""

import argparse
import time
from contextlib import contextmanager

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import golden.nn as gn
from golden.bfp import decode, encode
from golden.fast import kernels
from golden.matmul import matmul
from golden.nn import fused
from golden.study.resnet import resnet20

from .tables import add_json, write

COUNTS = [1, 2]


def best(calls, repeat, wall=False):
    """Shortest time of each call in seconds, the calls taking turns: of a processor on one thread, else wall time."""
    times, clock = [float("inf")] * len(calls), time.process_time
    if wall or kernels.threads() > 1:
        clock = time.perf_counter
    for call in calls:
        call()
    for _ in range(repeat):
        for i, call in enumerate(calls):
            start = clock()
            call()
            times[i] = min(times[i], clock() - start)
    return times


@contextmanager
def threads(count):
    """NumPy's BLAS, torch and the kernels on ``count`` threads."""
    from threadpoolctl import threadpool_limits
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    kernels.set_threads(count)
    with threadpool_limits(count):
        yield
    torch.set_num_threads(before)
    kernels.set_threads(None)


def plain_emulation(x, m, tile):
    """The baseline: per-tile block floating point as research code writes it in PyTorch.

    log2 of the tile's maximum gives the exponent; divide, round, multiply, clamp.
    """
    rows, columns = x.shape
    tiles = torch.nn.functional.pad(x, (0, -columns % tile, 0, -rows % tile))
    tiles = tiles.reshape(tiles.shape[0] // tile, tile, -1, tile).transpose(1, 2)
    tiles = tiles.reshape(-1, tile * tile)
    exponent = torch.ceil(torch.log2(tiles.abs().max(1, keepdim=True).values + 1e-8))
    interval = torch.pow(2.0, exponent - m)
    limit = torch.pow(2.0, exponent) - interval
    tiles = torch.min(torch.max(torch.round(tiles / interval) * interval, -limit), limit)
    tiles = tiles.reshape(-(-rows // tile), -(-columns // tile), tile, tile).transpose(1, 2)
    return tiles.reshape(-(-rows // tile) * tile, -1)[:rows, :columns].contiguous()


def conversion(console, repeat):
    """4096 x 4096 float32 to HBFP8 and back to FP32 values."""
    x = np.random.default_rng(0).standard_normal((4096, 4096), np.float32)
    y, t = np.empty_like(x), torch.from_numpy(x)
    table = Table("format", "ms", "ms, 2 threads", "scaling", "copy ms", "copy / ours", "emulation ms",
                  "emulation / ours", "NumPy definition / ours", title="4096 x 4096 to HBFP8, one thread")
    with threads(1):
        start = time.perf_counter()
        decode(encode(x, gn.HBFPFormat()))
        plain = time.perf_counter() - start
    for block, axis in (((1, 16), -1), ((1, 32), -1), ((1, 64), -1), ((1, 32), 0), ((16, 16), -1), ((24, 24), -1)):
        fmt = gn.HBFPFormat(block=block)
        tile = block[0] if fmt.square else 16

        def ours(fmt=fmt, axis=axis):
            kernels.encoded(x, fmt, axis=axis, out=y)
        with threads(1):
            one, copy = best([ours, lambda: np.copyto(y, x)], repeat)
            alone, = best([ours], repeat, wall=True)
            emulation, = best([lambda tile=tile: plain_emulation(t, 7, tile)], max(1, repeat // 5))
        with threads(2):
            two, = best([ours], repeat)
        table.add_row(f"{block}, axis {axis}", f"{one * 1e3:.1f}", f"{two * 1e3:.1f}", f"{alone / two:.2f}",
                      f"{copy * 1e3:.1f}", f"{copy / one:.2f}", f"{emulation * 1e3:.0f}", f"{emulation / one:.0f}",
                      f"{plain / one:.0f}")
    console.print(table)
    return table


def products(console, repeat):
    """Products of golden.matmul.matmul, conversions included, against float32 BLAS."""
    rng = np.random.default_rng(0)
    table = Table("product", "threads", "exact ms", "BLAS ms", "BLAS / exact", title="HBFP8 in hardware order")
    for (m, k, n), block in (((1024,) * 3, (1, 32)), ((1024,) * 3, (1, 16)), ((1024,) * 3, (24, 24)),
                             ((256, 1024, 1024), (1, 32))):
        x, w = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
        fmt = gn.HBFPFormat(block=block)
        for count in COUNTS:
            with threads(count):
                ours, blas = best([lambda fmt=fmt, x=x, w=w: matmul(x, w, fmt), lambda x=x, w=w: x @ w], repeat)
            table.add_row(f"{m} x {k} x {n}, {block}", str(count), f"{ours * 1e3:.1f}", f"{blas * 1e3:.1f}",
                          f"{blas / ours:.2f}")
    console.print(table)
    return table


def training(console, repeat):
    """One training step: forward, backward, SGD with momentum."""
    table = Table("network", "threads", "FP32 ms", "exact ms", "exact / FP32", "quick ms", "quick / FP32",
                  title="Training step")
    torch.manual_seed(0)

    def mlp():
        return torch.nn.Sequential(*[part for _ in range(3) for part in (torch.nn.Linear(1024, 1024),
                                                                         torch.nn.ReLU())])
    cases = {"MLP 3 x 1024, batch 256, (1, 32)": (mlp, (256, 1024), (1, 32)),
             "MLP 3 x 1024, batch 256, (16, 16)": (mlp, (256, 1024), (16, 16)),
             "ResNet-20, 32 x 32, batch 64, (1, 16)": (resnet20, (64, 3, 32, 32), (1, 16))}
    for name, (make, shape, block) in cases.items():
        x = torch.randn(shape)
        for count in COUNTS:
            calls = []
            for order in (None, "block", "quick"):
                net = make()
                if order:
                    gn.convert(net, gn.HBFPFormat(block=block), order=order)
                optimiser = torch.optim.SGD(net.parameters(), 1e-3, momentum=0.9)

                def step(net=net, optimiser=optimiser, x=x):
                    optimiser.zero_grad()
                    net(x).square().mean().backward()
                    optimiser.step()
                calls.append(step)
            with threads(count):
                fp32, exact, quick = best(calls, repeat)
            table.add_row(name, str(count), *(f"{v:.2f}" for v in (fp32 * 1e3, exact * 1e3, exact / fp32, quick * 1e3,
                                                                   quick / fp32)))
    console.print(table)
    return table


def jobs(console, repeat):
    """Eight digits MLPs as one job against eight serial steps."""
    table = Table("models", "batch", "threads", "serial ms", "job ms", "serial / job",
                  title="Eight HBFP8 MLPs 64-128-64-10: forward, backward, SGD with momentum")

    def make(index, mixed):
        torch.manual_seed(index)
        net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64), torch.nn.ReLU(),
                                  torch.nn.Linear(64, 10))
        return gn.convert(net, gn.HBFPFormat(mantissa=(4, 6, 8)[index % 3] if mixed else 8, block=(1, 16)))
    for mixed in (False, True):
        for batch in (16, 32, 64):
            x, t = torch.randn(8 * batch, 64), torch.randint(10, (8 * batch,))
            alone, members = ([make(i, mixed) for i in range(8)] for _ in range(2))
            own = [torch.optim.SGD(net.parameters(), 0.01, momentum=0.9) for net in alone]
            job = fused.fuse(members)
            step = fused.Step(job, [torch.optim.SGD(net.parameters(), 0.01 * (1 + i), momentum=0.9)
                                    for i, net in enumerate(members)])

            def serial(alone=alone, own=own, x=x, t=t):
                for net, optimiser, a, b in zip(alone, own, x.chunk(8), t.chunk(8), strict=True):
                    optimiser.zero_grad()
                    torch.nn.functional.cross_entropy(net(a), b).backward()
                    optimiser.step()

            def together(job=job, step=step, x=x, t=t):
                step.zero_grad()
                fused.cross_entropy(job(x), t, 8).backward()
                step()
            for count in COUNTS:
                with threads(count):
                    one, other = best([serial, together], 4 * repeat)
                table.add_row("4, 6, 8 bits" if mixed else "8 bits", str(batch), str(count), f"{one * 1e3:.2f}",
                              f"{other * 1e3:.2f}", f"{one / other:.2f}")
    console.print(table)
    return table


def main():
    """Run the parts asked for."""
    parts = {"conversion": conversion, "matmul": products, "step": training, "fused": jobs}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(parts)}; all by default")
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--threads", type=int, nargs="+", default=COUNTS, help="thread counts of products and steps")
    add_json(parser)
    options = parser.parse_args()
    COUNTS[:] = options.threads
    console = Console(width=150)
    console.print(f"torch {torch.__version__}, numpy {np.__version__}, {kernels.threads()} processors")
    write(options.json, *[parts[name](console, options.repeat) for name in options.parts or parts])


if __name__ == "__main__":
    main()
