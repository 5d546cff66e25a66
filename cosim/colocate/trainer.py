"""A training whose steps are begun one by one: what a host writes before each, and what PyTorch has behind it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hbfp.golden.lower.rewriting import Rewritten
from hbfp.program import Program

from ..accelerator.placed import Place, bring
from ..bench.comparison import Comparison

if TYPE_CHECKING:
    from hbfp.golden.lower.training.job import Job  # takes torch
    from hbfp.golden.lower.training.step import Step


class Trainer:
    """Steps of a training, and the same in PyTorch.

    Parameters
    ----------
    step : Step or Job
    made : Rewritten
        Its program with YIELDs.
    batches : iterator
        As the step takes them.
    place : Place

    Attributes
    ----------
    compared : Comparison
        The loss of each step that has ended; behind :meth:`finish` also all that the last one changes.
    under_way : bool
        Whether a step has begun and not ended.
    losses : list of float32 array
        The device's, of each step.
    wanted : list of float32 array
        PyTorch's.
    """

    def __init__(self, step: "Step | Job", made: Rewritten, batches: Iterator[Any], place: Place) -> None:
        self.step, self.made, self.batches, self.place = step, made, batches, place
        self.compared, self.losses, self.wanted = Comparison(), list[np.ndarray](), list[np.ndarray]()
        self.under_way = False
        self._batch: Any = None
        self._arguments: tuple[int, ...] = ()
        self._expected: dict[str, np.ndarray] = {}

    @property
    def done(self) -> int:
        """Steps that have ended."""
        return len(self.losses)

    def begin(self) -> Program:
        """Write what the next step needs; its program with what registers must have."""
        self._batch, self._arguments = next(self.batches), self.step.arguments()
        bring(self.place, self.step, self._batch, self._arguments)
        program = self.made.program
        if chosen := self.step.instructions(self._batch):
            moved = {number: replace(each, waits=program.instructions[number].waits) for number, each in (
                (int(self.made.numbers[number]), each) for number, each in chosen.items())}
            self.place.rewrite(moved)
            program = program.rewritten(moved)
        self.under_way = True
        return replace(program, arguments=self._arguments, seed=self.step.key)

    def end(self) -> None:
        """The step has ended: let PyTorch do it, too, and compare the loss."""
        self.under_way = False
        self._expected = self.step.advance(self._batch)
        for name in self.step.losses:
            self._compare(name)
        for losses, read in ((self.losses, self._read), (self.wanted, self._expected.__getitem__)):
            losses.append(np.array([read(name) for name in self.step.losses], np.float32))

    def finish(self) -> None:
        """No further step begins: compare all that the last one has changed, gradients, weights and state."""
        for name in self._expected:
            if name not in self.step.losses:
                self._compare(name)

    def _read(self, name):
        return self.place.read(name, self.step.shift(name, self._arguments))

    def _compare(self, name):
        self.compared.add(f"step {self.done}, {name}", self._read(name),
                          np.ascontiguousarray(self._expected[name], np.float32))
