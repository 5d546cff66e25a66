"""A linear layer's training step on a GPU beside the emulators that researchers use, for :mod:`benchmarks.gpu`.

    git clone https://github.com/microsoft/microxcaling peers/microxcaling
    git clone https://github.com/parsa-epfl/HBFPEmulator peers/HBFPEmulator
    python -m benchmarks.gpu --parts peers --peers peers

None of them has the bits of a hardware: they round FP32 numbers to a block format and multiply these in FP32.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

import golden.nn as gn

from .gpu_models import hbfp

#: Rows of the input, and features of the layer on both sides.
ROWS, FEATURES = 8192, 4096
#: Folders that a folder of peers has.
NAMES = ("microxcaling", "HBFPEmulator")


def ours(*block: int, gradients: str = "rne") -> Callable[[], nn.Module]:
    """Our layer with such blocks."""
    return lambda: gn.convert(nn.Linear(FEATURES, FEATURES, bias=False).cuda(), hbfp(*block, gradients=gradients))


def microxcaling(custom: bool) -> Callable[[], nn.Module]:
    """MXINT8 with blocks of 32 in all three products, by its CUDA extension or by torch's operations."""
    def make():
        import mx
        if custom:
            import mx.custom_extensions  # noqa: F401  compiled here, not within what is timed
        specs = mx.finalize_mx_specs({"w_elem_format": "int8", "a_elem_format": "int8", "block_size": 32,
                                      "scale_bits": 8, "custom_cuda": custom})
        return mx.Linear(FEATURES, FEATURES, bias=False, mx_specs=specs).cuda()
    return make


def emulator(rounding: str) -> Callable[[], nn.Module]:
    """Tiles of 32 with 8 bits; it rounds all operands before they are multiplied, and gradients once."""
    def make():
        from bfp.bfp_ops import BFPLinear
        return BFPLinear(FEATURES, FEATURES, bias=False, num_format="bfp", mant_bits=8, weight_mant_bits=8,
                         bfp_tile_size=32, rounding_mode=rounding, device="cuda").cuda()
    return make


#: Title -> layer, and the title of ours that it is compared with.
LAYERS: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "FP32": (lambda: nn.Linear(FEATURES, FEATURES, bias=False).cuda(), ""),
    "HBFP8 (1, 32)": (ours(1, 32), ""), "HBFP8 (32, 32)": (ours(32, 32), ""),
    "HBFP8 (32, 32), stochastic g": (ours(32, 32, gradients="stochastic"), ""),
    "microxcaling, CUDA": (microxcaling(True), "HBFP8 (1, 32)"),
    "microxcaling, torch": (microxcaling(False), "HBFP8 (1, 32)"),
    "HBFPEmulator, nearest": (emulator("determ"), "HBFP8 (32, 32)"),
    "HBFPEmulator, stochastic": (emulator("stoc"), "HBFP8 (32, 32), stochastic g")}


def steps(folder: Path, milliseconds: Callable[..., float]) -> list[dict[str, Any]]:
    """Milliseconds of a forward and a backward pass of each, and over those of our layer of the same blocks."""
    sys.path[:0] = [str(folder / name) for name in NAMES]
    x = torch.randn(ROWS, FEATURES, device="cuda", requires_grad=True)
    g = torch.randn(ROWS, FEATURES, device="cuda")
    rows: dict[str, dict[str, Any]] = {}
    for title, (make, beside) in LAYERS.items():
        row: dict[str, Any] = {"title": title, "ms": None, "over_ours": None}
        rows[title] = row
        try:
            layer = make()

            def step(layer=layer):
                x.grad = layer.weight.grad = None
                layer(x).backward(g)
            row["ms"] = milliseconds(step, 5)
        except Exception as error:  # noqa: BLE001  code of others: whatever it raises is its result
            row["error"] = (str(error).splitlines() or [type(error).__name__])[0][:120]
        if beside and row["ms"] and rows[beside]["ms"]:
            row["over_ours"] = row["ms"] / rows[beside]["ms"]
        torch.cuda.empty_cache()
    return [{"error": "", **row} for row in rows.values()]
