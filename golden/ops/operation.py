"""What is said about an operation of torch: its names, its shape, and its form for given arguments.

A form is a program of the vector unit, the tensors whose elements, rows or windows it takes, and one :class:`Result`
for each row that the program gives to the stream, in order: the tensors that torch gives. Whoever runs a form gives the
program the stream rows in the order of its operands, and may leave out results that nobody reads
(:func:`golden.ops.results.without`). That is the one definition of an operation's bits, forward, backward and in an
optimiser (:mod:`golden.ops.optimisers`):

- A form may have several results: ``native_layer_norm`` gives rows, and for each row its mean and its root.
- A result with ``over`` is a sum over rows, such as the gradient of a bias: a row of the program for each row of
  the operands, added up from -0 over these dimensions in ascending order, the last of them fastest. Dimensions that
  are neither in ``over`` nor the row have a sum each. A device adds as the rows come:
  :func:`golden.ops.results.running`.
- An operand whose size along the rows is 1 is a number for each row; the program takes it as a row of that length,
  between instructions that set the length to 1 and back.
- An operation with ``parts`` in place of a form is made of others, in torch. With both, its parts are what an operation
  without a program for its arguments is made of. :meth:`Operation.apart` decides, so that ``golden.nn`` and
  :func:`golden.ops.table.decompositions` do alike.
- Gradients are those that autograd calls; what it writes in other operations of the table (the gradient of ``div`` by
  ``neg``, ``mul`` and ``div``) has their bits. Several gradients of one tensor are added in the order in which autograd
  has them, that of the last operation that read the tensor first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import torch

from hbfp.golden.spec.vector import Reduce
from hbfp.golden.vector.side import elements

from .results import ALONE, Program, Result


class Unsupported(ValueError):
    """Arguments for which an operation has no program; one line that says why and what would do."""


class Shape(Enum):
    """What part of its operands an element of a result depends on."""
    ELEMENT = "element"     #: the same element of each operand
    ROW = "row"             #: a row, along one dimension
    WINDOW = "window"       #: a window over the pixels, or all numbers of a mean
    MOVE = "move"           #: one element, of another place; no arithmetic
    PARTS = "parts"         #: what its parts say, which are other operations


@dataclass(frozen=True, eq=False)
class Elements:
    """A program for each element of operands that broadcast; it gives as many numbers as there are ``results``."""
    program: Program
    operands: tuple[torch.Tensor, ...]
    results: tuple[Result, ...] = ALONE


@dataclass(frozen=True, eq=False)
class Rows:
    """A program for each row of operands of one shape, or with one number in place of a row.

    Attributes
    ----------
    program : list of VectorInstruction
    operands : tuple of Tensor
    dim : int
        The dimension along which rows are.
    merged : int
        How many dimensions at the end are, in their order, one row.
    numbers : tuple of Tensor
        Parameters, such as weights; ``fixed`` makes of their bit patterns the rows in registers 1, 2 and so on.
    results : tuple of Result
        Of the rows that the program gives.
    """
    program: Program
    operands: tuple[torch.Tensor, ...]
    dim: int = -1
    merged: int = 1
    numbers: tuple[torch.Tensor, ...] = ()
    fixed: Callable[..., Sequence[np.ndarray]] = lambda *patterns: patterns
    results: tuple[Result, ...] = ALONE

    @property
    def sums(self) -> bool:
        """Whether the program gives anything but one row for each row, or adds up or compares numbers within a row."""
        return self.results != ALONE or any(each.reduce != Reduce.NONE for each in self.program)

    @property
    def as_given(self) -> bool:
        """Whether the rows in registers are the parameters themselves."""
        return self.fixed is Rows.fixed

    def rows(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor as rows along :attr:`dim`; a view where torch can give one."""
        return tensor.flatten(-self.merged) if self.merged > 1 else tensor

    def result(self, rows: torch.Tensor, number: int = 0) -> torch.Tensor:
        """The operation's result ``number``, as a view of the rows that the program has given for it.

        ``rows`` has the dimensions that :meth:`rows` gives; those of which one number is left have size 1.
        """
        result = self.results[number]
        gone = {d % rows.dim() for d in (*result.over, *([self.dim] if result.single else ()))}
        shape = self.operands[0].shape[-self.merged:]
        if self.merged > 1:
            rows = rows.unflatten(-1, (1,) * self.merged if result.single else shape)
        return rows if result.keep or not gone else rows.squeeze(tuple(gone))


@dataclass(frozen=True, eq=False)
class Windows:
    """A program for each window, of its elements in order, kernel row by kernel row.

    Attributes
    ----------
    program : list of VectorInstruction
    operands : tuple of Tensor
        One tensor, (..., H, W).
    size, stride, padding, dilation : (int, int)
    border : float
        The number that pads the images.
    over : tuple of int
        For a mean, the dimensions that are one window, ascending; with ``keep`` they stay, of size 1.
    line : bool
        Whether the operand is (..., L), images of one row.
    """
    program: Program
    operands: tuple[torch.Tensor, ...]
    size: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    border: float = 0.0
    over: tuple[int, ...] = ()
    keep: bool = False
    line: bool = False
    results: tuple[Result, ...] = ALONE

    def images(self, tensor: torch.Tensor) -> torch.Tensor:
        """The operand, or a tensor of its dimensions, as (..., H, W); a view where torch can give one."""
        if not self.over:
            return tensor.unsqueeze(-2) if self.line else tensor
        kept = [d for d in range(tensor.dim()) if d not in self.over]
        tensor = tensor.permute(*kept, *self.over)
        if len(kept) > 2:
            tensor = tensor.flatten(0, len(kept) - 2)
        for _ in range(2 - len(kept)):
            tensor = tensor.unsqueeze(0)
        return tensor.unsqueeze(-1) if tensor.dim() == 3 else tensor.flatten(2, -2)

    def places(self, result: torch.Tensor) -> torch.Tensor:
        """The operation's result in the dimensions of :meth:`images`: (..., OH, OW)."""
        for d in () if self.keep else self.over:
            result = result.unsqueeze(d)
        return self.images(result)


Form = Elements | Rows | Windows


@dataclass(frozen=True, eq=False)
class Operation:
    """An operation of core ATen.

    Attributes
    ----------
    name : str
        What it is called in messages.
    calls : tuple
        Torch's packets of overloads for it, with those that change their operand.
    shape : Shape
    form : callable
        Gives the form for the operation's arguments, which may be on device ``meta``, or raises :class:`Unsupported`.
    parts : callable, optional
        Computes the operation by others, in torch, from the same arguments: without ``form``, or where that raises.
    kept : callable, optional
        Gives, for the same arguments, what torch returns behind the first result, for gradients.
    gradient : bool
        Whether it is one that autograd calls.
    truth : bool
        Whether torch's result is truths: 1 and 0 here.
    """
    name: str
    calls: tuple[Any, ...]
    shape: Shape
    form: Callable[..., Form] | None = None
    parts: Callable[..., Any] | None = None
    kept: Callable[..., tuple[Any, ...]] | None = None
    gradient: bool = False
    truth: bool = False

    def apart(self, *args: Any, **kwargs: Any) -> Any:
        """The result by other operations, if there is no program for these arguments.

        NotImplemented if there is one, or no parts for them; parts are of real numbers.
        """
        first = next((each for each in args if isinstance(each, torch.Tensor)), None)
        if self.parts is None or first is not None and not (first.is_floating_point() or first.dtype == torch.bool):
            return NotImplemented
        if self.form is not None:
            try:
                self.form(*args, **kwargs)
                return NotImplemented
            except Unsupported:
                pass
        try:
            return self.parts(*args, **kwargs)
        except Unsupported:
            return NotImplemented


def calls(*names: str) -> tuple[Any, ...]:
    """Torch's packets of these names, and of those that change their operand."""
    aten = torch.ops.aten
    return tuple(getattr(aten, each) for name in names for each in (name, f"{name}_") if hasattr(aten, each))


def keeps_zeros(program: Program, operands: int = 1) -> bool:
    """Whether a program of each element by itself makes zeros of zeros, such as those that fill up words."""
    return not (elements(list(program), *[np.zeros(1, np.uint32)] * operands) << 1).any()


def dims_of(x: torch.Tensor, dim: Any) -> tuple[int, ...]:
    """The dimensions that an argument of torch names, ascending; all of them for None and for an empty list."""
    dims = [dim] if isinstance(dim, int) else dim or range(x.dim())
    return tuple(sorted(d % x.dim() for d in dims))


def pair(value: Any) -> tuple[int, int]:
    """(height, width) of a size that torch also takes as one number."""
    return (value, value) if isinstance(value, int) else (value[0], value[-1])
