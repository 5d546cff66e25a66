"""Operators of torch are what compilers take them for."""

import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402

HBFP8 = gn.Formats.of("hbfp8").text
SIDES = [2, 1], [1, 0], [1, 2]
CALLS = {
    "linear": lambda t: (t(2, 3, 8), t(5, 8), HBFP8), "matmul": lambda t: (t(2, 3, 8), t(2, 8, 5), HBFP8),
    "conv2d": lambda t: (t(2, 4, 5, 6), t(6, 2, 3, 2), *SIDES, 2, HBFP8),
    "conv3d": lambda t: (t(2, 4, 3, 5, 6), t(6, 4, 1, 3, 2), *([1, *side] for side in SIDES), 1, HBFP8),
    "conv_transpose3d": lambda t: (t(2, 4, 1, 5, 6), t(4, 3, 1, 3, 2), [1, 2, 1], [0, 1, 0], [0, 1, 0], 2, [1, 1, 2],
                                   HBFP8),
    "add_bias": lambda t: (t(2, 3, 8), t(8)),
    "grouped": lambda t: (t(6, 8), t(2, 8, 5), torch.tensor([2, 5]), HBFP8)}
LAST = {f"{name}.last": CALLS[name] for name in ("conv2d", "conv3d", "conv_transpose3d")}
VALUES = {name: lambda t: (t(2, 4, 5, 6), t(6, 4, 3, 2), *SIDES, 1, gn.Formats.of("mxfp8").text)
          for name in ("conv2d", "conv2d.last")}


@pytest.mark.parametrize("name, given", [*CALLS.items(), *LAST.items(), *VALUES.items()])
def test_operators_are_what_they_say(name, given):
    """Shapes, places in memory, and memory that is nobody else's: compilers rely on it and write over results."""
    kind, _, version = name.partition(".")
    given = given(lambda *shape: torch.randn(shape).requires_grad_())
    operator = getattr(getattr(torch.ops.hbfp, kind), version or "default")
    torch.library.opcheck(operator, given, test_utils=("test_schema", "test_autograd_registration", "test_faketensor"))
    back = getattr(getattr(torch.ops.hbfp, f"{kind}_backward"), version or "default")
    rest, needs = (given[1:], ()) if kind == "add_bias" else (given, ([True, True],))
    rest = [each.detach() if isinstance(each, torch.Tensor) else each for each in rest]
    torch.library.opcheck(back, (torch.randn_like(operator(*given)), *rest, *needs),
                          test_utils=("test_schema", "test_faketensor"))


def test_convolutions_lie_in_memory_as_without_a_trace():
    """So that a compiled network copies no images around its products."""
    layer, x = gn.HBFPConv2d(4, 6, 3), torch.randn(2, 4, 5, 6, requires_grad=True)
    want = layer(x)
    got = torch.ops.hbfp.conv2d.last(x, layer.weight, [1, 1], [0, 0], [1, 1], 1, layer.formats.text)
    assert want.stride() == got.stride() == want.contiguous(memory_format=torch.channels_last).stride()
