"""Functions and layers of PyTorch called with wrong values of every kind, as in tests/golden/test_hostile.py."""

from functools import partial

import pytest

torch = pytest.importorskip("torch")
import golden.nn as gn  # noqa: E402
from golden.lower.lowering import lower, lower_job  # noqa: E402
from golden.nn import functional as F  # noqa: E402
from golden.noise import Stream  # noqa: E402
from hbfp.design import Design  # noqa: E402
from hbfp.format import HBFPFormat  # noqa: E402
from hbfp.system import Accelerator  # noqa: E402

from ..test_hostile import ODD, WRONG, complaint, text  # noqa: E402

X, SMALL = torch.ones(4, 8), Accelerator(core=Design(rows=8, format=HBFPFormat(block=(1, 8))))
KINDS = WRONG | {
    "module": [*ODD, 8, X, [1], torch.nn.Linear],
    "tensor": [*ODD, 8, 1.5, X.numpy(), [1], X.double(), X.long(), X > 0, X.to(torch.complex64)],
    "formats": [*ODD, 8, 1.5, X.numpy(), [1], "int7", "hbfp1", "hbfp17"],
    "choices": [None, 8, 1.5, [8], [None], ["nothing"], "nothing", torch.nn.Conv2d],
    "sparsity": [*ODD, 8, "2", "2:", "5:4", "-1:4", "2:4:8", X],
    "accelerator": [*ODD, 8, X, Design()],
    "optimiser": [*ODD, 8, X, torch.nn.Linear(2, 2)]}


def converted():
    return gn.convert(torch.nn.Sequential(torch.nn.Linear(8, 8)), "hbfp8")


CALLS = {
    "convert": (gn.convert, lambda: {"module": torch.nn.Sequential(torch.nn.Linear(8, 8)), "fmt": "hbfp8",
                                     "exclude": (), "seed": 1}, "module formats choices whole-"),
    "options": (gn.Formats.of, lambda: {"fmt": "hbfp8", "w": "hbfp8", "g": "hbfp8", "order": "block",
                                        "accumulate": "aligned", "guard": 4, "growth": 8, "mode": "hbfp"},
                "formats formats formats word word whole whole- word"),
    "linear layer": (gn.HBFPLinear, lambda: {"in_features": 8, "out_features": 8, "fmt": "hbfp8", "seed": 1},
                     "- - formats whole"),
    "linear": (F.linear, lambda: {"input": X, "weight": torch.ones(2, 8), "bias": torch.ones(2), "formats": "hbfp8"},
               "tensor tensor - formats"),
    "matmul": (F.matmul, lambda: {"a": X, "b": torch.ones(8, 2), "formats": "hbfp8"}, "tensor tensor formats"),
    "quantise": (gn.quantise, lambda: {"x": X, "fmt": "hbfp8", "axis": -1}, "tensor formats axis"),
    "sparsify": (gn.sparsify, lambda: {"module": converted(), "sparsity": "2:4", "order": "sparsify-quantise"},
                 "module sparsity word"),
    "wide_weights": (gn.wide_weights, lambda: {"optimiser": torch.optim.SGD(converted().parameters())}, "optimiser"),
    "hbfp_layers": (gn.hbfp_layers, lambda: {"module": converted()}, "module"),
    **{name: (getattr(gn, name), lambda: {"module": converted()}, "module")
       for name in ("freeze", "thaw", "densify", "weights")},
    "lower": (lower, lambda: {"model": torch.nn.Linear(8, 8).eval(), "inputs": (X,), "accelerator": SMALL},
              "module - accelerator"),
    "lower_job": (lower_job, lambda: {"models": [torch.nn.Linear(8, 8).eval()], "inputs": [(X,)], "accelerator": SMALL},
                  "program - accelerator"),
    "stream": (Stream, lambda: {"seed": 1, "lanes": 8}, "whole whole")}
KINDS["whole-"] = [value for value in WRONG["whole"] if value is not None]


@pytest.mark.parametrize("name", CALLS)
def test_one_line_of_ours(name):
    function, right, kinds = CALLS[name]
    function(**right())
    wrong = []
    for argument, kind in zip(right(), kinds.split(), strict=True):
        for value in KINDS.get(kind, ()):
            if said := complaint(partial(function, **right() | {argument: value})):
                wrong.append(f"{argument} = {text(value)}: {said}")
    assert not wrong, "\n".join([f"{len(wrong)} of {name}:", *wrong])
