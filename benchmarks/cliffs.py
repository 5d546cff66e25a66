"""Every option of the golden model against the FP32 work it stands for, side by side in one run.

    python -m benchmarks.cliffs [CASE ...] [--repeat 5] [--limit 2] [--emulator FOLDER] [--microxcaling FOLDER]

Each figure is the shortest processor time of --repeat rounds on one thread in which all sides take turns. The two
published emulators are timed on the same work where their folders (clones of their repositories) are given; where one
has no such option, the cell is empty. With a --limit, trainings that take more than so many times FP32 are named at the
end, and the exit status is 1.
"""

import argparse
import copy
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import nn

import golden.nn as gn
from golden.bfp import decode, emulate, encode
from golden.fast import kernels
from golden.study.resnet import resnet20

from .golden_speed import best, threads
from .tables import add_json, write


@dataclass(frozen=True)
class Case:
    """A network, its input, a format, further options of a conversion, and whether it trains or infers.

    ``emulator`` and ``microxcaling`` are options of the published emulators that do the same work.
    """
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    fmt: gn.HBFPFormat
    options: dict = field(default_factory=dict)
    train: bool = True
    emulator: dict | None = None
    microxcaling: int | None = None


def mlp():
    """Three layers of 1024."""
    return nn.Sequential(*[part for _ in range(3) for part in (nn.Linear(1024, 1024), nn.ReLU())])


def convolution(channels, groups=1):
    """Two convolutions: the input gradient of the second is part of a step."""
    return nn.Sequential(*[nn.Conv2d(channels, channels, 3, padding=1, groups=groups, bias=False) for _ in range(2)])


def attention():
    """One layer of a transformer, 4 heads."""
    return nn.TransformerEncoderLayer(128, 4, 512, dropout=0, batch_first=True)


def volumes(groups=1):
    """Two convolutions of volumes."""
    return nn.Sequential(*[nn.Conv3d(32, 32, 3, padding=1, groups=groups, bias=False) for _ in range(2)])


def transposed(kind, channels, groups=1):
    """Two transposed convolutions, each with twice as many pixels along a side as before."""
    return nn.Sequential(*[kind(channels, channels, 4, 2, 1, groups=groups, bias=False) for _ in range(2)])


#: Kinds of layers, each with its input and the terms of a block.
KINDS = {
    "mlp": (mlp, (256, 1024), 32), "resnet20": (resnet20, (64, 3, 32, 32), 16),
    "64 channels": (lambda: convolution(64), (4, 64, 32, 32), 16),
    "groups of 8": (lambda: convolution(64, 8), (16, 64, 32, 32), 16),
    "depthwise": (lambda: convolution(64, 64), (16, 64, 32, 32), 16), "attention": (attention, (16, 64, 128), 32),
    "volumes": (volumes, (2, 32, 8, 16, 16), 16), "depthwise volumes": (lambda: volumes(32), (2, 32, 8, 16, 16), 16),
    "transposed": (lambda: transposed(nn.ConvTranspose2d, 64), (8, 64, 8, 8), 16),
    "depthwise transposed": (lambda: transposed(nn.ConvTranspose2d, 64, 64), (8, 64, 8, 8), 16),
    "transposed volumes": (lambda: transposed(nn.ConvTranspose3d, 32), (2, 32, 2, 8, 8), 16)}


def _kinds():
    """Each kind of layer with each kind of sums, and with tiles and noise."""
    cases = {}
    for name, (make, shape, terms) in KINDS.items():
        fmt = gn.HBFPFormat(block=(1, terms))
        cases[name] = Case(make, shape, fmt)
        for sums in ("fp24", "bf16", "aligned"):
            cases[f"{name} {sums}"] = Case(make, shape, fmt, {"accumulate": sums})
        cases[f"{name} tiles"] = Case(make, shape, replace(fmt, block=(24, 24)))
        cases[f"{name} stochastic"] = Case(make, shape, replace(fmt, rounding="stochastic"))
    return cases


def _cases():
    f, images, rows = gn.HBFPFormat, (64, 3, 32, 32), (256, 1024)
    determ = dict(rounding_mode="determ", mant_bits=7, bfp_tile_size=24)
    stoc = dict(determ, rounding_mode="stoc")
    cases = {
        "resnet20": Case(resnet20, images, f(block=(1, 16)), microxcaling=16),
        "resnet20 tiles": Case(resnet20, images, f(block=(24, 24)), emulator=determ),
        "resnet20 stochastic": Case(resnet20, images, f(block=(1, 16), rounding="stochastic"), emulator=stoc),
        "resnet20 W 12": Case(resnet20, images, f(block=(1, 16), mantissa=12), emulator=dict(determ, mant_bits=11)),
        "resnet20 W 16": Case(resnet20, images, f(block=(1, 16), mantissa=16), emulator=dict(determ, mant_bits=15)),
        "mlp": Case(mlp, rows, f(), microxcaling=32),
        "mlp tiles": Case(mlp, rows, f(block=(24, 24)), emulator=determ),
        "mlp stochastic": Case(mlp, rows, f(rounding="stochastic"), emulator=stoc),
        "mlp W 12": Case(mlp, rows, f(mantissa=12), emulator=dict(determ, mant_bits=11)),
        "mlp W 16": Case(mlp, rows, f(mantissa=16), emulator=dict(determ, mant_bits=15)),
        "attention W 12": Case(attention, (16, 64, 128), f(mantissa=12)),
        "depthwise": Case(*KINDS["depthwise"][:2], f(block=(1, 16)), emulator=determ, microxcaling=16),
        "groups of 8": Case(*KINDS["groups of 8"][:2], f(block=(1, 16)), emulator=determ, microxcaling=16),
        "24 channels": Case(lambda: convolution(24), (64, 24, 32, 32), f(block=(1, 16)), emulator=determ,
                            microxcaling=16),
        "infer mlp": Case(mlp, (1, 1024), f(), train=False, emulator=determ, microxcaling=32),
        "infer resnet20": Case(resnet20, (1, 3, 32, 32), f(block=(1, 16)), train=False, emulator=determ,
                               microxcaling=16),
        "mlp emulated": Case(mlp, rows, f(block=(24, 24)), {"mode": "emulator"}, emulator=determ),
        "resnet20 emulated": Case(resnet20, images, f(block=(24, 24)), {"mode": "emulator"}, emulator=determ),
    }
    return _kinds() | cases


CASES = _cases()
#: Cases whose step is compiled, too.
COMPILED = ("mlp", "resnet20", "attention")


def step(net, x, train):
    """A call that trains one step with momentum, or infers."""
    if not train:
        net.eval()

        @torch.no_grad()
        def infer():
            net(x)
        return infer
    optimiser = torch.optim.SGD(net.parameters(), 1e-3, momentum=0.9)

    def one():
        optimiser.zero_grad()
        y = net(x)
        (y.square().mean() if y.dim() else y).backward()
        optimiser.step()
    return one


def replaced(net, twins):
    """``net`` with its Linear and Conv2d layers replaced by what ``twins`` makes of them."""
    for name, layer in net.named_children():
        if type(layer) in twins:
            setattr(net, name, twins[type(layer)](layer))
        else:
            replaced(layer, twins)
    return net


def _conv_arguments(c):
    return c.in_channels, c.out_channels, c.kernel_size, c.stride, c.padding, c.dilation, c.groups


def emulated(case):
    """The case on the published research emulator."""
    from bfp.bfp_ops import BFPConv2d, BFPLinear
    options = dict(num_format="bfp", epsilon=1e-8, weight_mant_bits=16, device="cpu", **case.emulator)
    return replaced(case.make(), {
        nn.Conv2d: lambda c: BFPConv2d(*_conv_arguments(c), c.bias is not None, **options),
        nn.Linear: lambda c: BFPLinear(c.in_features, c.out_features, **options)})


def microscaled(case):
    """The case on microxcaling with MXINT8, every product of training quantised."""
    import mx
    specs = mx.finalize_mx_specs({"w_elem_format": "int8", "a_elem_format": "int8", "block_size": case.microxcaling,
                                  "scale_bits": 8, "bfloat": 0, "custom_cuda": False, "quantize_backprop": True})
    return replaced(case.make(), {
        nn.Conv2d: lambda c: mx.Conv2d(*_conv_arguments(c), c.bias is not None, mx_specs=specs),
        nn.Linear: lambda c: mx.Linear(c.in_features, c.out_features, c.bias is not None, mx_specs=specs)})


def conversion(console, repeat):
    """The public ``encode`` and ``decode`` beside the kernel that layers use and a copy."""
    x = np.random.default_rng(0).standard_normal((4096, 4096), np.float32)
    y = np.empty_like(x)
    table = Table("4096 x 4096", "encode ms", "decode ms", "layers' kernel ms", "copy ms", title="Conversion")
    for block in ((1, 32), (24, 24)):
        fmt = gn.HBFPFormat(block=block)
        blocks = encode(x, fmt)
        times = best([lambda fmt=fmt: encode(x, fmt), lambda blocks=blocks: decode(blocks),
                      lambda fmt=fmt: kernels.encoded(x, fmt, out=y), lambda: np.copyto(y, x)], repeat)
        table.add_row(str(block), *(f"{1e3 * t:.1f}" for t in times))
    console.print(table)
    return table


def rounding(console, repeat, emulator):
    """``golden.bfp.emulate`` beside the research emulator's own function, where its folder is given, and a copy."""
    x = np.random.default_rng(0).standard_normal((4096, 1024), np.float32)
    y, noise = np.empty_like(x), np.random.default_rng(1).random(x.shape, np.float32) - np.float32(0.5)
    table = Table("4096 x 1024", "ours ms", "stochastic ms", "emulator ms", "stochastic emulator ms", "copy ms",
                  title="The research emulator's rounding")
    for tile in (24, 0):
        calls = [lambda tile=tile: emulate(x, 7, tile), lambda tile=tile: emulate(x, 7, tile, noise),
                 lambda: np.copyto(y, x)]
        if emulator:
            from bfp.bfp_ops import float_to_bfp_tiled
            calls += [lambda tile=tile, mode=mode: float_to_bfp_tiled(torch.from_numpy(x), 7, 1e-8, mode, "cpu", tile,
                                                                      "bfp") for mode in ("determ", "stoc")]
        ours, drawn, copy, *theirs = (f"{1e3 * t:.2f}" for t in best(calls, repeat))
        table.add_row(f"tiles of {tile}" if tile else "one block", ours, drawn, *(theirs or ("", "")), copy)
    console.print(table)
    return table


class Loss(nn.Module):
    """A network and its loss, which a compiled step has in one graph."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x).square().mean()


def compiled(console, repeat):
    """A training step with torch.compile beside the same without, and beside torch's own FP32 so; no graph breaks.

    The first step of both is compared: torch's compiler may join pointwise operations and add in another order.
    """
    table = Table("step", "eager ms", "compiled ms", "eager / compiled", "FP32: eager / compiled",
                  "gradients of other bits, %", "largest difference / norm", title="torch.compile of a training step")
    for name in COMPILED:
        case = CASES[name]
        torch.manual_seed(0)
        plain, x = Loss(case.make()), torch.randn(case.shape)
        ours = gn.convert(copy.deepcopy(plain), case.fmt, **case.options)
        nets = [copy.deepcopy(net) for net in (plain, plain, ours, ours)]
        runs = [torch.compile(net, fullgraph=True) if i % 2 else net for i, net in enumerate(nets)]
        for run in runs[2:]:
            run(x).backward()
        one, two = (torch.cat([p.grad.flatten() for p in net.parameters()]) for net in nets[2:])
        times = best([step(run, x, True) for run in runs], 4 * repeat)
        table.add_row(name, f"{times[2] * 1e3:.2f}", f"{times[3] * 1e3:.2f}", f"{times[2] / times[3]:.2f}",
                      f"{times[0] / times[1]:.2f}", f"{100 * (one != two).double().mean():.1f}",
                      f"{(one - two).abs().max() / one.norm():.1e}")
    console.print(table)
    return table


def main():
    """Run the cases asked for."""
    known = ["conversion", "rounding", "compiled", *CASES]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(known)}; all by default")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--limit", type=float, help="times FP32 that no training may exceed")
    parser.add_argument("--emulator", help="folder of the research emulator, github.com/parsa-epfl/HBFPEmulator")
    parser.add_argument("--microxcaling", help="folder of github.com/microsoft/microxcaling")
    add_json(parser)
    options = parser.parse_args()
    unknown = [name for name in options.cases if name not in known]
    if unknown:
        parser.error(f"case {unknown[0]!r}: must be of {', '.join(known)}")
    sys.path += [folder for folder in (options.emulator, options.microxcaling) if folder]
    console = Console(width=150)
    table = Table("case", "FP32 ms", "ours ms", "ours / FP32", "emulator / ours", "microxcaling / ours",
                  title="One training step, or one inference")
    tables, ratios = [table], {}
    with threads(1):
        if not options.cases or "conversion" in options.cases:
            tables.append(conversion(console, options.repeat))
        if not options.cases or "rounding" in options.cases:
            tables.append(rounding(console, options.repeat, options.emulator))
        if not options.cases or "compiled" in options.cases:
            tables.append(compiled(console, options.repeat))
        for name in options.cases or CASES:
            if name in CASES:
                cells = measure(CASES[name], options)
                table.add_row(name, *cells)
                ratios[name] = float(cells[2]) if CASES[name].train else 0
    console.print(table)
    write(options.json, *tables)
    above = [name for name, ratio in ratios.items() if options.limit and ratio > options.limit]
    if above:
        sys.exit(f"Above {options.limit:g} times FP32: {', '.join(above)}")


def measure(case, options):
    """Cells of one row."""
    x = torch.randn(case.shape)
    nets = [case.make(), gn.convert(case.make(), case.fmt, **case.options)]
    if not case.train and hasattr(gn, "freeze"):
        gn.freeze(nets[1])
    others = [options.emulator and case.emulator and emulated, options.microxcaling and case.microxcaling
              and microscaled]
    nets += [make(case) for make in others if make]
    fp32, ours, *rest = best([step(net, x, case.train) for net in nets], options.repeat * (1 if case.train else 20))
    ratios = [f"{rest.pop(0) / ours:.2f}" if make else "" for make in others]
    return f"{fp32 * 1e3:.2f}", f"{ours * 1e3:.2f}", f"{ours / fp32:.2f}", *ratios


if __name__ == "__main__":
    main()
