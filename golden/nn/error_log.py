"""Errors of a model's operands through a training: a row for each operand, every so many steps."""

import csv
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from hbfp.checks import check_range
from hbfp.extras import need

from .operand_errors import Errors, OperandError, errors

#: Columns of the file: the step, what names an operand, and what :class:`golden.nn.operand_errors.OperandError` knows.
NAMES = ("layer", "operation", "product", "role", "format")
FIGURES = ("qsnr", "saturated_share", "flushed_share")
COLUMNS = ("step", *NAMES, "elements", *FIGURES, "least_exponent", "most_frequent_exponent", "greatest_exponent",
           "invalid")


def first(batch: Any) -> Any:
    """What a model takes of a batch, as far as its form tells: the first of several, or all of it."""
    return batch[0] if isinstance(batch, (tuple, list)) else batch


class ErrorLog:
    """Calls :func:`golden.nn.errors` on batches of a training, and writes what it finds; the training keeps its bits.

    In a loop of one's own :meth:`step` is called in each step. For Lightning it has the hooks of a callback, which is a
    class of both: ``class Log(golden.nn.ErrorLog, lightning.Callback): pass``.

    Parameters
    ----------
    path : str or path-like
        The CSV file, of columns :data:`COLUMNS`. An operand that is exact has no ``qsnr``.
    every : int
        Steps from one measurement to the next; the first step is measured.
    inputs : function
        From a batch to what the model takes: a tensor, a tuple in order or a mapping by name.
    loss : function, optional
        From the model's output and the batch to a number. With it the products of both gradients are judged, too.
    tensorboard : str, path-like or SummaryWriter, optional
        Where TensorBoard's curves of QSNR and shares go, too: a folder, or a writer that the training has.
    resume : bool
        Whether rows go behind those of a file that is there.

    Raises
    ------
    FileExistsError
        If the file is there, and this does not ``resume``.
    ModuleNotFoundError
        If ``tensorboard`` is a folder, and TensorBoard is missing.
    ValueError
        If ``every`` is out of range, or the file to go on with has other columns.
    """

    def __init__(self, path: str | os.PathLike[str], *, every: int = 100, inputs: Callable[[Any], Any] = first,
                 loss: Callable[[Any, Any], torch.Tensor] | None = None, tensorboard: Any = None,
                 resume: bool = False) -> None:
        check_range("Interval", every, 1, 2 ** 31 - 1, " steps")
        self.path, self.every, self.inputs, self.loss = Path(path), every, inputs, loss
        self._steps, self._measured = 0, -1
        self._writer, self._own = tensorboard, False
        if isinstance(tensorboard, (str, os.PathLike)):
            self._writer, self._own = _writer(tensorboard), True
        self._begin(resume)

    def _begin(self, resume):
        if self.path.exists() and not resume:
            raise FileExistsError(f"{self.path} is there already; resume=True goes on with it")
        if self.path.exists():
            with self.path.open(newline="") as file:
                if (found := tuple(next(csv.reader(file), ()))) != COLUMNS:
                    raise ValueError(f"{self.path} must have the columns {', '.join(COLUMNS)}, not {', '.join(found)}")
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._append([dict(zip(COLUMNS, COLUMNS, strict=True))])

    def _append(self, rows):
        with self.path.open("a", newline="") as file:
            csv.DictWriter(file, COLUMNS, lineterminator="\n").writerows(rows)

    def step(self, model: torch.nn.Module, batch: Any, number: int | None = None) -> Errors | None:
        """Measure, if it is time.

        Parameters
        ----------
        model : torch.nn.Module
            The model, as of :func:`golden.nn.errors`.
        batch : object
            What ``inputs`` and ``loss`` take.
        number : int, optional
            The step's number; without it calls are counted, from 0.

        Returns
        -------
        Errors or None
            What was found, None between measurements and for a step that was measured already.
        """
        number = self._steps if number is None else number
        self._steps = number + 1
        if number % self.every or number == self._measured:
            return None
        self._measured = number
        given, loss = self.inputs(batch), self.loss
        inputs, named = ((), given) if isinstance(given, Mapping) else \
            (given if isinstance(given, tuple) else (given,), None)
        found = errors(model, *inputs, named=named, loss=None if loss is None else lambda y: loss(y, batch))
        self._append(_rows(number, found))
        for operand in found.operands if self._writer is not None else ():
            for name, value in _curves(operand):
                self._writer.add_scalar(name, value, number)
        return found

    def close(self) -> None:
        """End the events of TensorBoard, of a writer of one's own aside."""
        if self._own:
            self._writer.close()

    def on_train_batch_start(self, trainer: Any, pl_module: torch.nn.Module, batch: Any, batch_idx: int) -> None:
        """Hook of Lightning: a step begins. One process of several measures."""
        if getattr(trainer, "is_global_zero", True):
            self.step(pl_module, batch, trainer.global_step)

    def on_fit_end(self, trainer: Any, pl_module: torch.nn.Module) -> None:
        """Hook of Lightning: the training is over."""
        self.close()


def _writer(folder):
    need("tensorboard")
    from torch.utils.tensorboard import SummaryWriter
    return SummaryWriter(str(folder))


def _rows(number, found):
    for each in found.operands:
        spread = each.exponents
        yield {"step": number, **{name: getattr(each, name) for name in (*NAMES, "elements", *FIGURES, "invalid")},
               "least_exponent": min(spread, default=None), "greatest_exponent": max(spread, default=None),
               "most_frequent_exponent": max(spread, key=lambda exponent: spread[exponent], default=None)}


def _curves(operand: OperandError) -> Iterator[tuple[str, float]]:
    """Names and values of an operand's curves; where nothing is lost there is no QSNR."""
    for figure in FIGURES:
        value = getattr(operand, figure)
        if value is not None:
            yield f"{figure}/{operand.layer or '(model)'} {operand.operation} {operand.product} {operand.role}", value
