"""HBFP on a GPU beside what the vendor's library does with FP32 and BF16: bits, conversions, products, training steps.

    python -m benchmarks.gpu                                        all of it; below 8 minutes on an H200
    python -m benchmarks.gpu --parts products conversions           some of it
    python -m benchmarks.gpu --json gpu.json                        and as data, with the device's name and versions
    python -m benchmarks.gpu --parts peers --peers FOLDER           beside emulators: benchmarks/gpu_peers.py

Times are medians of 20 calls after warm-up, each behind a delay on the device, so that the host's work is not in them;
training steps are measured as they run, and as a CUDA graph where one can be captured. Nothing is asserted but bits:
the exit status is 1 if a number differs from the golden model's.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from golden.bfp import encode
from golden.gpu.runtime import problem
from golden.matmul import matmul
from hbfp import files
from hbfp.command import Parser, run
from hbfp.format import HBFPFormat
from hbfp.values import OptionError, writable_file

from .gpu_warm import tasks, warm
from .tables import add_json

PARTS = ("ceilings", "bits", "conversions", "products", "training", "peers")
#: Side of the matrices whose conversions and products are timed.
SIDE = 8192
#: Formats of the table, all with mantissas of 8 bits.
BLOCKS = ((1, 16), (1, 32), (1, 64), (1, 128), (16, 16), (32, 32), (64, 64))
#: Clock cycles that the device waits while the host prepares what is measured.
DELAY = 3_000_000


def prepare(args):
    """From parsed arguments to the work; OptionError if a value is not valid or there is no GPU."""
    import torch
    if unknown := [part for part in args.parts if part not in PARTS]:
        raise OptionError(f"PART must be one of {', '.join(PARTS)}, not {unknown[0]!r}")
    if (line := problem(torch.device("cuda")) if torch.cuda.is_available() else "no CUDA device was found") is not None:
        raise OptionError(f"The benchmark needs a GPU: {line}")
    parts = args.parts or [part for part in PARTS if part != "peers" or args.peers]
    if "peers" in parts and not args.peers:
        raise OptionError("PART peers needs --peers FOLDER, with the emulators' sources")
    return partial(work, parts, args.elements, args.peers, args.cold, args.json and writable_file("json", args.json))


def milliseconds(call: Callable[[], Any], times: int = 20) -> float:
    """Median time of a call on the device."""
    import torch
    for _ in range(3):
        call()
    found = []
    for _ in range(times):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in "ab")
        torch.cuda._sleep(DELAY)
        first.record()
        call()
        last.record()
        torch.cuda.synchronize()
        found.append(first.elapsed_time(last))
    return sorted(found)[times // 2]


def ceilings() -> dict[str, float]:
    """What the device does by itself: a copy in GB/s, bytes read and written, and products of ``SIDE`` in ms."""
    import torch
    x = torch.randn(SIDE, SIDE, device="cuda")
    y, narrow = torch.empty_like(x), torch.randn(SIDE, SIDE, device="cuda", dtype=torch.bfloat16)
    return {"copy": 8 * x.numel() / milliseconds(lambda: y.copy_(x)) / 1e6,
            "bf16": milliseconds(lambda: narrow @ narrow.T), "fp32": milliseconds(lambda: x @ x.T, 5)}


def conversions(base: dict[str, float]) -> list[dict[str, Any]]:
    """Conversions both ways in one pass: ms, GB/s of the bytes that have to move, and their share of a copy."""
    import torch

    from golden.gpu.convert import converted
    x, rows = torch.randn(1, SIDE, SIDE, device="cuda"), []
    for block in BLOCKS:
        fmt = HBFPFormat(mantissa=8, block=block)
        both = converted(x, fmt, across=True, down=True)
        size = 4 * x.numel() + sum(part.numel() * part.element_size() for lines in both if lines is not None
                                   for part in (lines.data, lines.scales))
        taken = milliseconds(lambda fmt=fmt: converted(x, fmt, across=True, down=True))
        rows.append({"block": list(block), "ms": taken, "gb_s": size / taken / 1e6,
                     "of_copy": size / taken / 1e6 / base["copy"]})
    return rows


def products(base: dict[str, float]) -> list[dict[str, Any]]:
    """Products of ``SIDE``, alone and with both conversions: ms, and speed over that of BF16 and of FP32."""
    import torch

    from golden.gpu.convert import converted
    from golden.gpu.product import product
    x, w = (torch.randn(1, SIDE, SIDE, device="cuda") for _ in "xw")
    rows = []
    for block in BLOCKS:
        fmt = HBFPFormat(mantissa=8, block=block)
        a, b = (converted(t, fmt, across=True)[0] for t in (x, w))

        def whole(fmt=fmt):
            return product(*(converted(t, fmt, across=True)[0] for t in (x, w)))
        alone, taken = milliseconds(lambda a=a, b=b: product(a, b)), milliseconds(whole)
        rows.append({"block": list(block), "alone_ms": alone, "ms": taken, "over_bf16": base["bf16"] / taken,
                     "over_fp32": base["fp32"] / taken, "tera_macs": SIDE ** 3 / alone / 1e9})
    return rows


#: Formats whose bits are compared: mantissa, exponent, subnormals, rounding.
NUMBERS = ((8, 10, "flush", "rne"), (8, 10, "gradual", "rne"), (4, 10, "flush", "rne"), (6, 6, "flush", "truncate"),
           (2, 10, "flush", "rne"), (9, 10, "flush", "rne"), (12, 10, "flush", "stochastic"),
           (16, 10, "gradual", "rne"), (8, 10, "flush", "stochastic"))
SHAPES = ((1, 16), (1, 32), (1, 64), (1, 128), (1, 256), (1, 1024), (16, 16), (24, 24), (32, 32), (64, 64))


def awkward(rng: np.random.Generator, shape: tuple[int, int], spread: int) -> np.ndarray:
    """Numbers of many magnitudes, among them zeros, subnormals, Inf and NaN."""
    x = np.ldexp(rng.standard_normal(shape, np.float32), rng.integers(-spread, spread + 1, (shape[0], 1)))
    x = x.astype(np.float32)
    strange = np.array([0, -0.0, 1e-40, -1e-42, 3e38, 2 ** -126, -2 ** -127, np.inf, np.nan], np.float32)
    x.reshape(-1)[rng.integers(0, x.size, 64)] = rng.choice(strange, 64)
    return x


def bits(elements: int) -> dict[str, Any]:
    """Conversions and products beside the golden model's, until so many numbers of each have been compared."""
    import torch

    from golden.gpu import encode as on_gpu
    from golden.gpu import matmul as product
    rng, found = np.random.default_rng(1), {"converted": 0, "multiplied": 0, "differ": 0}
    cases = [(number, block) for number in NUMBERS for block in SHAPES]
    turn = 0

    def formats():
        (mantissa, exponent, subnormals, rounding), block = cases[turn * 37 % len(cases)]
        return HBFPFormat(mantissa=mantissa, exponent=exponent, subnormals=subnormals, rounding=rounding, block=block)
    while found["converted"] < elements:
        fmt, axis, turn = formats(), -1 - turn % 2, turn + 1
        x = awkward(rng, (4000, 5003), 40)
        noise = rng.integers(0, 2 ** fmt.noise_bits, x.shape, np.int32) if fmt.rounding == "stochastic" else None
        want = encode(x, fmt, noise, axis=axis)
        got = on_gpu(torch.from_numpy(x).cuda(), fmt, axis, None if noise is None else torch.from_numpy(noise).cuda())
        for name in ("mantissa", "exponent", "invalid"):
            found["differ"] += int((getattr(got, name).cpu().numpy() != getattr(want, name)).sum())
        found["converted"] += x.size
    while found["multiplied"] < elements:
        fmt, turn = formats(), turn + 1
        if fmt.rounding == "stochastic":
            continue
        accumulate = ("fp32", "fp32", "fp32", "aligned")[turn % 4]
        m, k, n = ((8000, 96, 8000) if accumulate == "fp32" else (600, 200, 700))
        spread = 4 if turn % 3 else 60
        x, w = awkward(rng, (m, k), spread), awkward(rng, (n, k), spread).T
        want = matmul(x, np.ascontiguousarray(w), fmt, accumulate)
        got = product(torch.from_numpy(x).cuda(), torch.from_numpy(w).cuda(), fmt, accumulate=accumulate)
        found["differ"] += int((got.cpu().numpy().view(np.uint32) != want.view(np.uint32)).sum())
        found["multiplied"] += want.size
    return found


def training() -> list[dict[str, Any]]:
    """Steps of a GPT and of ResNet-50 in FP32, under BF16 autocast and in HBFP: ms, and times over those of FP32."""
    from .gpu_models import MODELS, steps
    return [row for name in MODELS for row in steps(name)]


def peers(folder: str) -> list[dict[str, Any]]:
    """A linear layer's step beside emulators: ms, and over ours."""
    from .gpu_peers import steps
    return steps(Path(folder), milliseconds)


def work(parts, elements, folder, cold, json):
    """Measure; the exit status is 1 if a number differs."""
    import torch
    import triton
    console, found = Console(), {}
    if not cold:
        started = time.perf_counter()
        warm(tasks(parts), torch.cuda.mem_get_info()[1] >> 30, console.print)
        console.print(f"[dim]compiled: {time.perf_counter() - started:.0f} s")
    found["device"] = {"name": torch.cuda.get_device_name(), "torch": torch.__version__, "triton": triton.__version__}
    base = found["ceilings"] = ceilings()
    console.print(found["device"], base)
    calls = {"bits": partial(bits, elements), "conversions": partial(conversions, base),
             "products": partial(products, base), "training": training, "peers": partial(peers, folder)}
    for part in (part for part in PARTS if part in parts and part in calls):
        started = time.perf_counter()
        found[part] = calls[part]()
        show(console, part, found[part])
        console.print(f"[dim]{time.perf_counter() - started:.0f} s")
        if json:
            files.write_json(json, found)
    return int(found.get("bits", {}).get("differ", 0) > 0)


def show(console: Console, name: str, found: Any) -> None:
    """Print a part's rows as a table."""
    rows = found if isinstance(found, list) else [found]
    table = Table(title=name)
    for key in rows[0]:
        table.add_column(key, justify="right")
    for row in rows:
        table.add_row(*(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()))
    console.print(table)


def make_parser():
    """The command line."""
    parser = Parser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--parts", nargs="+", default=[], metavar="PART", help="of " + ", ".join(PARTS))
    parser.add_argument("--elements", type=int, default=10 ** 9, help="numbers whose bits are compared, of each kind")
    parser.add_argument("--peers", metavar="FOLDER", help="of the emulators' sources: see benchmarks/gpu_peers.py")
    parser.add_argument("--cold", action="store_true", help="compile kernels as they are met, not side by side before")
    add_json(parser)
    return parser


def main(argv=None):
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv)


if __name__ == "__main__":
    raise SystemExit(main())
