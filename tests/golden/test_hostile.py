"""Public functions of the golden model called with wrong values of every kind: a sentence of ours, one line, each time.

One argument of a call that is right is replaced by a value that it cannot be. What comes of it must be a TypeError or a
ValueError that a ``raise`` of ours raises, nothing from the insides of ours, of Python, NumPy or torch.
"""

import ast
import math
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

from golden import bfp, fp32, functions, matmul, noise, schedule, sparsity
from golden.core import baselines, core, device
from golden.number import blocks, to_fp32
from golden.perf import cycles, space, workloads
from golden.perf.constants import published
from golden.perf.dispatch import arrivals, bound, events
from golden.spec.dispatch import DispatchUnit, Policy
from golden.spec.floats import FloatFormat
from golden.spec.format import HBFPFormat
from golden.spec.tables import FUNCTIONS
from golden.spec.vector import VectorUnit
from golden.vector import programs as vector_programs
from golden.vector import side
from golden.vector import unit as vector
from hbfp.design import Design
from hbfp.system import Accelerator

ROOT = Path(__file__).parents[2]
X, W = np.ones((4, 64), np.float32), np.ones((64, 8), np.float32)
ONES = np.full((4, 8), 0x3F800000, np.uint32)
FORMAT, BLOCKS = HBFPFormat(), bfp.encode(X, HBFPFormat())
ODD = [None, "x", {}, object(), b"x", lambda: 0]
NOT_ARRAYS = [*ODD, [[1], [1, 2]], np.array([object()]), np.array("x"), np.zeros(3, complex), np.zeros(2, "M8[s]")]
#: Kind of argument -> values that it cannot be.
WRONG = {
    "floats": [*NOT_ARRAYS, 1.5, 7, X.astype(np.float64), X.astype(np.float16), ONES, [1.0], True],
    "floats?": [*NOT_ARRAYS[1:], 1.5, X.astype(np.float64), True],
    "matrix": [np.float32(1), X[0], X[None], np.ones((3, 3), np.float32), *NOT_ARRAYS, X.astype(np.float64)],
    "patterns": [*NOT_ARRAYS, 1.5, X, True, 1 << 40, 1 << 80, np.full((4, 8), 1 << 33)],
    "integers": [*NOT_ARRAYS, 1.5, X, True, 1 << 80],
    "whole": [*ODD, 1.5, 8.0, math.nan, math.inf, "8", True, -1 << 70, 1 << 70, [1], np.float32(2), X],
    "number": [*ODD, math.nan, -1, -math.inf, "8", [1], X, 1j],
    "word": [*ODD, "", "nothing", 3, 1.5, ["rne"], X, True],
    "format": [*ODD, 8, "hbfp8", FloatFormat(), X],
    "pair": [*ODD, 8, (1,), (1, 2, 3), (1, 1.5), ("1", "8"), (0, 8), (-1, -1), (1, 1 << 70), X, (True, True)],
    "axis": [*ODD, 2, -3, 1 << 70, 1.5, "0", [0], X],
    "shape": [*ODD, 4, (4, -64), (4, 64.0), ("4", 64), X],
    "object": [*ODD, 8, 1.5, X, [1]],
    "unit": [*ODD[1:], 8, 1.5, X, [1]],
    "factors": [*NOT_ARRAYS[1:], 1.5, X, True, 1 << 40],
    "condition": [*NOT_ARRAYS, 1.5, X],
    "line": [*NOT_ARRAYS, 8, X],
    "input": [None, 8, "x", [None], ["x"], [1.5], [1 << 70], {1.5: 1}],
    "program": [None, 8, "x", [None], ["x"], [1.5], [-1], [1 << 70], {1.5: 1}],
}
#: Name -> (function, arguments that are right, kind of each that is replaced).
CALLS = {
    "HBFPFormat": (HBFPFormat, {"mantissa": 8, "exponent": 10, "block": (1, 32), "rounding": "rne", "noise_bits": 8},
                   "whole whole pair word whole"),
    "FloatFormat": (FloatFormat, {"exponent": 8, "fraction": 23}, "whole whole"),
    "VectorUnit": (VectorUnit, {"lanes": 8, "beats": 4, "registers": 2, "pipeline": 1}, "whole whole whole whole"),
    "DispatchUnit": (DispatchUnit, {"depth": 16, "address": 32, "tag": 8, "time": 16, "counter": 32, "stamped": 0},
                     "whole whole whole whole whole whole"),
    "MixedMantissa": (schedule.MixedMantissa, {"base": 4, "boosted": 6, "epochs": 9, "last_epochs": 1, "first": 0},
                      "whole whole whole whole whole"),
    "Side": (side.Side, {"lanes": 8}, "whole"),
    "encode": (bfp.encode, {"x": X, "fmt": FORMAT, "noise": None, "axis": -1}, "floats format - axis"),
    "encode with noise": (bfp.encode, {"x": X, "fmt": HBFPFormat(rounding="stochastic"),
                                       "noise": np.zeros(X.shape, np.int32)}, "- - integers"),
    "encode_plain": (bfp.encode_plain, {"x": X, "fmt": FORMAT, "axis": -1}, "floats format axis"),
    "decode": (bfp.decode, {"blocks": BLOCKS}, "object"),
    "decode_plain": (bfp.decode_plain, {"blocks": BLOCKS}, "object"),
    "emulate": (bfp.emulate, {"x": X, "mant_bits": 7, "tile": 0}, "floats whole whole"),
    "matmul": (matmul.matmul, {"x": X, "w": W, "fmt": FORMAT, "accumulate": "fp32", "w_fmt": FORMAT},
               "matrix matrix format word -"),
    "matmul aligned": (matmul.matmul, {"x": X, "w": W, "fmt": FORMAT, "accumulate": "aligned", "guard": 4, "growth": 8},
                       "- - - - whole whole"),
    "matmul_blocks": (matmul.matmul_blocks, {"x": BLOCKS, "w": bfp.encode(W, FORMAT, axis=0), "accumulate": "fp32"},
                      "object object word"),
    "matmul_fp32": (baselines.matmul_fp32, {"x": X, "w": W, "rows": 8}, "matrix matrix whole"),
    "matmul_bf16": (baselines.matmul_bf16, {"x": X, "w": W, "rows": 8}, "matrix matrix whole"),
    "matmul_fma": (baselines.matmul_fma, {"x": X, "w": W, "rows": 8}, "matrix matrix whole"),
    "matmul_int": (baselines.matmul_int, {"x": np.ones((2, 3), int), "w": np.ones((3, 2), int)}, "integers integers"),
    "mantissa_dot": (matmul.mantissa_dot, {"a": [1, 2], "b": [3, 4]}, "integers integers"),
    **{f"fp32.{name}": (getattr(fp32, name), {"a": ONES, "b": ONES, "fmt": fp32.FP32, "subnormals": "flush"},
                        "patterns patterns object word")
       for name in ("add", "sub", "mul", "div", "min", "max", "compare")},
    **{f"fp32.{name}": (getattr(fp32, name), {"a": ONES, "fmt": fp32.FP32, "subnormals": "flush"},
                        "patterns object word") for name in ("sqrt", "abs", "neg", "to_int32")},
    "fp32.fma": (fp32.fma, {"a": ONES, "b": ONES, "c": ONES, "underflow": "signed"}, "patterns patterns patterns word"),
    "fp32.select": (fp32.select, {"condition": True, "a": ONES, "b": ONES}, "condition patterns patterns"),
    "fp32.from_int": (fp32.from_int, {"value": 3, "exponent": 2}, "integers integers"),
    "fp32.convert": (fp32.convert, {"a": ONES, "source": fp32.FP32, "target": fp32.BF16}, "patterns object object"),
    "to_fp32": (to_fp32.to_fp32, {"total": 3, "exponent": 2, "subnormals": "flush"}, "integers integers word"),
    **{name: (getattr(functions, name), {"x": ONES}, "patterns") for name in FUNCTIONS},
    "evaluate": (functions.evaluate, {"name": "exp", "x": ONES}, "word patterns"),
    "prune": (sparsity.prune, {"w": W, "n": 2, "m": 4, "axis": 0}, "floats whole whole axis"),
    "keep_mask": (sparsity.keep_mask, {"w": W, "n": 2, "m": 4, "axis": 0}, "floats whole whole axis"),
    "prune_fraction": (sparsity.prune_fraction, {"w": W, "fraction": 0.5}, "floats number"),
    "compress": (sparsity.compress, {"w": sparsity.prune(W, 2, 4), "n": 2, "m": 4, "axis": 0}, "- whole whole axis"),
    "read_index": (sparsity.read_index, {"index": np.zeros((32, 8), int), "n": 2, "m": 4, "axis": 0},
                   "integers whole whole axis"),
    "expand": (sparsity.expand, {"values": np.zeros((32, 8)), "index": np.zeros((32, 8), int), "n": 2, "m": 4,
                                 "axis": 0}, "- integers whole whole axis"),
    "mix": (noise.mix, {"seed": 1}, "whole"),
    "lane_starts": (noise.lane_starts, {"seed": 1, "lanes": 8}, "whole whole"),
    "lane_triples": (noise.lane_triples, {"lanes": 8}, "whole"),
    "states": (noise.states, {"seed": 1, "lanes": 8, "beats": 2}, "whole whole whole"),
    "noise": (noise.noise, {"shape": (4, 64), "fmt": FORMAT, "lanes": 8, "seed": 1, "axis": -1},
              "shape format whole whole axis"),
    "block_axis": (blocks.block_axis, {"ndim": 2, "fmt": FORMAT, "axis": -1}, "whole format axis"),
    "core.matmul": (core.matmul, {"design": Design(), "x": X, "w": W, "scale": np.ones(8, np.float32)},
                    "object matrix matrix floats?"),
    "core.encode": (core.encode, {"design": Design(), "x": X, "axis": -1}, "object floats axis"),
    "core.side": (core.side, {"y": ONES, "scale": ONES[0], "bias": ONES[0]}, "patterns factors factors"),
    "rows": (partial(side.Side(lanes=8).rows, vector_programs.activation("relu")), {"inputs": ONES}, "patterns"),
    "elements": (side.elements, {"program": vector_programs.activation("relu"), "inputs": ONES}, "program patterns"),
    "Machine": (vector.Machine, {"unit": VectorUnit(), "shape": (2,)}, "unit shape"),
    "run": (vector.Machine(VectorUnit(lanes=8, beats=1)).run,
            {"program": vector_programs.activation("relu"), "inputs": [ONES[0]]}, "program input"),
    "check": (vector.check, {"word": vector_programs.length(8).encode(), "unit": VectorUnit()}, "whole object"),
    "lstm": (workloads.lstm, {"width": 8, "steps": 2}, "whole whole"),
    "resnet50": (workloads.resnet50, {"side": 224, "classes": 10}, "whole whole"),
    "bert": (workloads.bert, {"tokens": 8, "layers": 2, "width": 8, "heads": 2}, "whole whole whole whole"),
    "product_commands": (cycles.product_commands, {"design": Design(), "count": 8, "terms": 32, "width": 32},
                         "object whole whole whole"),
    "point": (space.point, {"constants": published("hbfp8")[0], "workload": workloads.lstm(), "rows": 32, "ghz": 1.0},
              "object object whole number"),
    "times": (arrivals.times, {"kind": "poisson", "count": 10, "rate": 1.0, "seed": 0}, "word whole number whole"),
    "bound": (bound.bound, {"batch": 4, "timeout": 3.0, "quantum": 1.0, "service": 1.0, "waiting": 2},
              "whole number number number whole"),
    "simulate": (events.simulate, {"arrivals": np.arange(4.0), "policy": Policy(), "service": 1.0, "quantum": 1.0},
                 "line object - number"),
    "linear_macs": (schedule.linear_macs, {"sizes": 8}, "whole"),
    "convolution_macs": (schedule.convolution_macs, {"side": 8, "kernel": 3, "channels_in": 4, "channels": 4},
                         "whole whole whole whole"),
    "resnet20_macs": (schedule.resnet20_macs, {"classes": 10}, "whole"),
    "mantissa": (schedule.MixedMantissa(epochs=3).mantissa, {"layer": 0, "layers": 3, "epoch": 1}, "whole whole whole"),
    "share": (schedule.MixedMantissa(epochs=3).share, {"macs": [1, 2]}, "program"),
    "Accelerator": (Accelerator, {"core": Design(rows=8, format=HBFPFormat(block=(1, 8))), "queue": 4}, "object whole"),
    "Device": (device.Golden, {"design": Design()}, "object"),
}
#: Those that take arguments without a name.
POSITIONAL = ("rows", "linear_macs", "elements")


@cache
def raises_in(path):
    """Lines of a file that belong to ``raise`` statements."""
    tree = ast.parse(Path(path).read_text())
    return {line for node in ast.walk(tree) if isinstance(node, ast.Raise)
            for line in range(node.lineno, node.end_lineno + 1)}


def complaint(call):
    """What is wrong with how a call ends, or None."""
    try:
        result = call()
    except (TypeError, ValueError) as error:
        trace = error.__traceback__
        while trace.tb_next:
            trace = trace.tb_next
        path = Path(trace.tb_frame.f_code.co_filename)
        where = f"{path}:{trace.tb_lineno}: {type(error).__name__}: {error}"
        if not path.is_relative_to(ROOT) or path.is_relative_to(ROOT / "tests") or ".venv" in path.parts:
            return f"not ours: {where}"
        if trace.tb_lineno not in raises_in(path):
            return f"from the insides: {where}"
        return None if str(error) and len(str(error).splitlines()) == 1 and len(str(error)) < 1000 else f"long: {where}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"accepted: {str(result)[:60]}"


def called(name, arguments):
    """The call, with arguments that take no name in their places."""
    function = CALLS[name][0]
    if name in POSITIONAL:
        return lambda: function(*arguments.values())
    return lambda: function(**arguments)


def text(value):
    return f"{type(value).__name__} {str(value)[:20]!r}"


@pytest.mark.parametrize("name", CALLS)
def test_one_line_of_ours(name):
    _, right, kinds = CALLS[name]
    called(name, right)()
    wrong = []
    for argument, kind in zip(right, kinds.split(), strict=False):
        for value in WRONG.get(kind, ()):
            said = complaint(called(name, right | {argument: value}))
            if said:
                wrong.append(f"{argument} = {text(value)}: {said}")
    assert not wrong, "\n".join([f"{len(wrong)} of {name}:", *wrong])


def test_there_are_enough():
    assert sum(len(WRONG.get(kind, ())) for _, _, kinds in CALLS.values() for kind in kinds.split()) > 1000
