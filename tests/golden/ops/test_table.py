"""The table of operations: no name stands twice, shapes are those of the forms, and gradients have theirs.

Covers: golden/ops/operation.py, golden/ops/elements.py, golden/ops/rows.py, golden/ops/windows.py, golden/ops/moves.py,
golden/ops/gradients.py.
"""

import pathlib
from collections import Counter

import pytest
import torch

from golden.ops.operation import Elements, Rows, Shape, Unsupported, Windows, calls, keeps_zeros, pair
from golden.ops.table import OPERATIONS, decompositions, operation_of
from golden.vector.programs import activation, shift

aten = torch.ops.aten


def test_no_call_stands_twice():
    counted = Counter(call for each in OPERATIONS for call in each.calls)
    assert [call for call, count in counted.items() if count > 1] == []


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.calls[0].__name__)
def test_shapes_say_what_there_is(operation):
    assert operation.calls and all(operation_of(getattr(call, call.overloads()[0])) is operation
                                   for call in operation.calls)
    assert (operation.form is None) == (operation.shape in (Shape.MOVE, Shape.PARTS))
    assert operation.parts is not None or operation.shape != Shape.PARTS


def test_gradients_are_told_apart():
    assert {each.name for each in OPERATIONS if each.gradient} == {
        each.name for each in OPERATIONS if each.name.endswith("_backward")}


def test_forms_of_shapes_alone():
    with torch.device("meta"):
        x, number = torch.empty(2, 3, 4, 6), torch.empty(3)
    for function, given, kind in [(aten.gelu, (x,), Elements), (aten.add, (x, 2), Elements),
                                  (aten._softmax, (x, -1, False), Rows), (aten.mean, (x, [-1]), Rows),
                                  (aten.native_layer_norm, (x, [4, 6], None, None, 1e-5), Rows),
                                  (aten.native_batch_norm, (x, None, None, number, number, False, 0.1, 1e-5), Rows),
                                  (aten.max_pool2d_with_indices, (x, [2, 2]), Windows),
                                  (aten.mean, (x, [2, 3]), Windows)]:
        operation = operation_of(function)
        form = operation.form(*given)
        assert type(form) is kind and form.operands[0] is x
        assert operation.name == "mean" or kind.__name__.lower().startswith(operation.shape.value)


def test_rows_and_images_are_views():
    x = torch.randn(2, 3, 4, 6)
    rows = operation_of(aten.native_layer_norm).form(x, [4, 6], None, None, 1e-5)
    assert rows.sums and rows.rows(x).shape == (2, 3, 24) and rows.result(rows.rows(x)).shape == x.shape
    mean = operation_of(aten.mean).form(x, [0])
    assert mean.images(x).shape == (12, 6, 2, 1) and mean.places(torch.empty(3, 4, 6)).shape == (12, 6, 1, 1)
    assert torch.equal(mean.images(x)[5, 4, 1, 0], x[1, 1, 1, 4])
    with pytest.raises(Unsupported, match=r"^it is a mean over dimensions \[1\] of 4, a sum and a product$"):
        operation_of(aten.mean).form(x, [1])               # images and channels of which no view is in torch's order
    line = operation_of(aten.avg_pool1d).form(x[0], [2], padding=[1])
    assert line.images(x[0]).shape == (3, 4, 1, 6)
    assert (line.size, line.stride, line.padding) == ((1, 2), (1, 2), (0, 1))


def test_what_has_no_program_says_why():
    with pytest.raises(Unsupported, match=r"^alpha=2 of a number is another operation; a product before it would do$"):
        operation_of(aten.add).form(torch.ones(2), 3, alpha=2)
    with pytest.raises(Unsupported, match=r"^rounding_mode='floor' gives whole numbers; division without it would do$"):
        operation_of(aten.div).form(torch.ones(2), torch.ones(2), rounding_mode="floor")
    with pytest.raises(Unsupported, match=r"^it gives float64; numbers of float32 would do$"):
        operation_of(aten.mean).form(torch.ones(2), [0], dtype=torch.float64)


def test_what_keeps_zeros():
    assert keeps_zeros(activation("relu")) and not keeps_zeros(activation("exp")) and not keeps_zeros(shift(1.0))


def test_names():
    assert calls("relu", "_softmax") == (aten.relu, aten.relu_, aten._softmax)
    assert pair(3) == pair([3]) == (3, 3) and pair((1, 2)) == (1, 2)
    assert operation_of(aten.atan.default) is None and operation_of(aten.gelu.default).name == "gelu"


def test_the_page_has_all_names():
    text = (pathlib.Path(__file__).parents[3] / "docs/accelerator.md").read_text()
    rows = [(each.value, [one for one in OPERATIONS if one.shape == each and not one.gradient]) for each in Shape]
    for title, found in (*rows, ("gradient", [each for each in OPERATIONS if each.gradient])):
        names = dict.fromkeys(each.name for each in found)
        assert f"| {title} | {', '.join(f'`{name}`' for name in names)} |\n" in text


def graph(function, *inputs):
    class Model(torch.nn.Module):
        def forward(self, *given):
            return function(*given)
    return torch.export.export(Model(), inputs, strict=False).graph


def test_torch_takes_apart_what_the_table_does_not_have():
    x = torch.randn(2, 3, 4)
    assert decompositions(graph(lambda x: x.relu().transpose(0, 1).flatten() + 1, x)) is None
    found = decompositions(graph(lambda x: torch.layer_norm(x, [4]).softmax(-1), x))
    assert {aten.layer_norm.default, aten.softmax.int} <= set(found)
    assert aten.matmul.default not in (decompositions(graph(lambda x: (x @ x.mT).softmax(-1), x)) or {})
    assert decompositions(graph(lambda x: torch.dropout(x, 0.5, True), x)) is None
