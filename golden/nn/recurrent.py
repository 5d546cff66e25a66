"""Recurrent layers in HBFP: both products of a step; gates and state are FP32.

The input's product is one for all steps, in the order of the layer's rows; then come the steps' own. Sequences may be
packed: step t has the first ``sizes[t]`` rows of the batch, and rows lie behind each other.
"""

from collections.abc import Callable, Sequence

import torch

from ..noise import Stream
from . import functional
from .dropout import dropped
from .formats import Formats

#: The state after a step, from the sums of the input and of the state and from the state before.
Cell = Callable[[torch.Tensor, torch.Tensor, tuple[torch.Tensor, ...]], tuple[torch.Tensor, ...]]


def _lstm(x, h, state):
    i, f, g, o = (x + h).chunk(4, -1)
    c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _gru(x, h, state):
    x_reset, x_update, x_new = x.chunk(3, -1)
    h_reset, h_update, h_new = h.chunk(3, -1)
    update, new = (x_update + h_update).sigmoid(), (x_new + (x_reset + h_reset).sigmoid() * h_new).tanh()
    return (new + update * (state[0] - new),)


#: What a step does with its sums.
CELLS: dict[str, Cell] = {"lstm": _lstm, "gru": _gru, "rnn_tanh": lambda x, h, state: ((x + h).tanh(),),
                          "rnn_relu": lambda x, h, state: ((x + h).relu(),)}


def step(kind: str, x: torch.Tensor, state: tuple[torch.Tensor, ...], w_x: torch.Tensor, w_h: torch.Tensor,
         b_x: torch.Tensor | None, b_h: torch.Tensor | None, formats: Formats,
         stream: Stream | None) -> tuple[torch.Tensor, ...]:
    """One step of a cell: x (..., I), state (h) or (h, c) of (..., H) -> the state after."""
    left = functional.linear(x, w_x, b_x, formats, stream=stream)
    return CELLS[kind](left, functional.linear(state[0], w_h, b_h, formats, stream=stream), state)


def run(kind: str, rows: torch.Tensor, sizes: Sequence[int], state: tuple[torch.Tensor, ...],
        weights: Sequence[torch.Tensor], formats: Formats, stream: Stream | None, *,
        linear: Callable[..., torch.Tensor] = functional.linear, bias: bool = True, layers: int = 1,
        dropout: float = 0.0, bidirectional: bool = False,
        projected: bool = False) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
    """All layers over all steps.

    Parameters
    ----------
    kind : str
        One of :data:`CELLS`.
    rows : Tensor
        (sum of sizes, I).
    sizes : sequence of int
        Rows of each step, which never become more.
    state : tuple of Tensor
        (h) or (h, c) at the start, each (layers * directions, N, ...).
    weights : sequence of Tensor
        As torch's ``_flat_weights``: for each layer and direction w_ih, w_hh, the two biases, the projection.
    linear : callable
        Makes each product, as :func:`golden.nn.functional.linear`.

    Returns
    -------
    (Tensor, tuple of Tensor)
        The last layer's outputs (sum of sizes, H * directions), and the state at the end.
    """
    sides, each = 2 if bidirectional else 1, 2 + 2 * bias + projected
    last: list[tuple[torch.Tensor, ...]] = []
    for layer in range(layers):
        outputs = []
        for side in range(sides):
            index = layer * sides + side
            own = weights[index * each:(index + 1) * each]
            y, end = _direction(kind, rows, sizes, tuple(part[index] for part in state), own, formats, stream,
                                bias, projected, side == 1, linear)
            outputs.append(y)
            last.append(end)
        rows = torch.cat(outputs, -1) if sides == 2 else outputs[0]
        if dropout and layer < layers - 1:
            rows = dropped(rows, dropout)
    return rows, tuple(torch.stack(parts) for parts in zip(*last, strict=True))


def _direction(kind, rows, sizes, state, weights, formats, stream, bias, projected, backwards, linear):
    """One layer in one direction."""
    w_x, w_h = weights[:2]
    b_x, b_h = weights[2:4] if bias else (None, None)
    inputs = linear(rows, w_x, b_x, formats, stream=stream).split(list(sizes))
    outputs = [rows] * len(sizes)
    for t in reversed(range(len(sizes))) if backwards else range(len(sizes)):
        now = tuple(part[:sizes[t]] for part in state)
        sums = linear(now[0], w_h, b_h, formats, stream=stream)
        after = CELLS[kind](inputs[t], sums, now)
        if projected:
            after = linear(after[0], weights[-1], None, formats, stream=stream), after[1]
        outputs[t] = after[0]
        state = tuple(torch.cat((new, old[sizes[t]:])) if sizes[t] < len(old) else new
                      for new, old in zip(after, state, strict=True))
    return torch.cat(outputs), state
