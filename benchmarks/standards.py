"""Numbers of other formats beside their definition and beside other implementations: how many elements differ.

    python -m benchmarks.standards [FORMAT ...] [--elements 10] [--microxcaling FOLDER] [--torchao FOLDER]

Each format of golden.spec.numbers converts --elements millions of float32 numbers of two kinds: ordinary ones, normal
around 0 in rows of sizes 2^-12 to 2^12 (2^-2 to 2^2 where a scale is a tensor's), and such whose blocks have a largest
magnitude within four last bits of a power of two. What golden.nn.rounded makes of them is compared with the definition
(golden.formats.coded.encode_plain), and with microxcaling and torchao where their folders, clones of their
repositories, are given; where one has no such format, the cell is empty.
"""

import argparse
import sys
from collections.abc import Callable

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from golden.formats.coded import decode, encode_plain
from golden.nn.rounded import rounded
from golden.spec.numbers import NUMBERS

from .tables import add_json, write

#: Numbers of a piece, in rows.
PIECE, ROW = 1 << 20, 1024
KINDS = ("ordinary", "near powers")


def sample(kind, number, seed):
    """A piece (rows, ROW) of numbers of one of :data:`KINDS`."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((PIECE // ROW, ROW)).astype(np.float32)
    most = 2 if "tensor" in number.scope else 12
    x *= np.exp2(rng.integers(-most, most + 1, (len(x), 1))).astype(np.float32)
    if kind == "near powers":
        blocks = x.reshape(-1, number.block or ROW)
        tops = np.exp2(np.ceil(np.log2(np.abs(blocks).max(1)))).astype(np.float32)
        tops = (tops.view(np.int32) + rng.integers(-4, 5, len(tops), np.int32)).view(np.float32)
        blocks[np.arange(len(blocks)), rng.integers(0, blocks.shape[1], len(blocks))] = tops
    return x


def microxcaling() -> dict[str, Callable[[torch.Tensor], torch.Tensor]]:
    """What it has: format -> conversion there and back."""
    from mx.mx_ops import _quantize_mx

    def of(name):
        return lambda x: _quantize_mx(x, 8, name, axes=[-1], block_size=32, round="even")
    return {"mxfp8-e4m3": of("fp8_e4m3"), "mxfp8-e5m2": of("fp8_e5m2"), "mxfp6-e2m3": of("fp6_e2m3"),
            "mxfp6-e3m2": of("fp6_e3m2"), "mxfp4": of("fp4_e2m1"), "mxint8": of("int8")}


def torchao() -> dict[str, Callable[[torch.Tensor], torch.Tensor]]:
    """The same."""
    from torchao.prototype.mx_formats import constants
    from torchao.prototype.mx_formats.mx_tensor import MXTensor
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale

    def mx(kind):
        return lambda x: MXTensor.to_mx(x, kind, 32).dequantize(torch.float32)

    def nvfp4(x):
        return NVFP4Tensor.to_nvfp4(x, per_tensor_scale=per_tensor_amax_to_scale(x.abs().max())).dequantize(
            torch.float32)
    return {"mxfp8-e4m3": mx(torch.float8_e4m3fn), "mxfp8-e5m2": mx(torch.float8_e5m2),
            "mxfp6-e2m3": mx(constants.DTYPE_FP6_E2M3), "mxfp6-e3m2": mx(constants.DTYPE_FP6_E3M2),
            "mxfp4": mx(torch.float4_e2m1fn_x2), "nvfp4": nvfp4}


def differing(a, b):
    """Elements that differ as numbers."""
    return int((a != b).sum())


def main():
    """Compare, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.standards", description=__doc__.partition("\n")[0])
    parser.add_argument("formats", nargs="*", help="by default all")
    parser.add_argument("--elements", type=int, default=10, help="millions, each 2^20, of each format and kind")
    parser.add_argument("--microxcaling", help="folder of github.com/microsoft/microxcaling")
    parser.add_argument("--torchao", help="folder of github.com/pytorch/ao")
    add_json(parser)
    options = parser.parse_args()
    sys.path += [folder for folder in (options.microxcaling, options.torchao) if folder]
    others = {name: each() for name, each, folder in (("microxcaling", microxcaling, options.microxcaling),
                                                      ("torchao", torchao, options.torchao)) if folder}
    for name in options.formats:
        if name not in NUMBERS:
            parser.error(f"format {name}: must be one of {', '.join(NUMBERS)}")
    table = Table("format", "kind", "elements", "definition", *others, title="elements that differ")
    console = Console()
    for name, number in NUMBERS.items():
        if options.formats and name not in options.formats:
            continue
        for kind in KINDS:
            counts = dict.fromkeys(("definition", *others), 0)
            for seed in track(range(options.elements), f"{name}, {kind}", console=console, transient=True):
                x = sample(kind, number, seed)
                ours = rounded(torch.from_numpy(x), number)
                counts["definition"] += differing(ours.numpy(), decode(encode_plain(x, number)))
                for other, has in others.items():
                    if name in has:
                        counts[other] += differing(ours, has[name](torch.from_numpy(x)))
            cells = [f"{counts[other]:,}" if name in has else "" for other, has in others.items()]
            table.add_row(name, kind, f"{options.elements * PIECE:,}", f"{counts['definition']:,}", *cells)
    console.print(table)
    write(options.json, table)


if __name__ == "__main__":
    main()
