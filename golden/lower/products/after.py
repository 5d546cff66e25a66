"""What the vector unit does with a product's rows while they are in V: sums with other tensors, activations, pools."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hbfp.golden.ops.operation import Windows
from hbfp.golden.spec.vector import VectorInstruction

from .. import vectors
from ..boxes import Loops
from ..builder import Builder
from ..memory import Value
from ..schedule import Ring, Span

Box = tuple[int, list[int], list[list[tuple[int, int]]]]


@dataclass
class Step:
    """A program for each element.

    Attributes
    ----------
    program : sequence of VectorInstruction
        Of one row, or of two.
    operand : Value or None
        The other tensor, of the product's shape.
    front : bool
        Whether the other one is the program's first row.
    """
    program: Sequence[VectorInstruction]
    operand: Value | None = None
    front: bool = False


@dataclass
class After:
    """Steps, one behind the other.

    Attributes
    ----------
    build : Builder
    steps : list of Step
    windows : Windows or None
        Behind them, of a convolution's pixels: windows that divide its images without rest, each as far from the next
        as it is large. What it gives is theirs.
    """
    build: Builder
    steps: list[Step] = field(default_factory=list)
    windows: Windows | None = None

    @property
    def others(self) -> list[Value]:
        """The other tensors, in order."""
        return [step.operand for step in self.steps if step.operand is not None]

    @property
    def operands(self) -> int:
        """Pieces of rows that stand in V beside the product's: theirs, and what windows give."""
        return len(self.others) + (self.windows is not None)

    @property
    def step(self) -> tuple[int, int]:
        """Pixels down and across of which a piece of rows has whole multiples."""
        return (1, 1) if self.windows is None else self.windows.size

    def pixels(self, output: Value) -> tuple[int, int]:
        """Pixels down and across of a convolution that gives (N, C, H, W) in the end."""
        (down, across), (tall, wide) = self.step, output.shape[2:]
        return down * tall, across * wide

    @property
    def share(self) -> int:
        """Words of V for a piece of rows: what a product takes, gives and adds stands there at a time, and is cut."""
        return self.build.v.size // max(6, self.operands + 4)

    def part(self, place: tuple[int | slice, ...]) -> "After":
        """The same for a part of the product: that at ``place`` of its first dimensions."""
        return After(self.build, [step if step.operand is None else replace(
            step, operand=Value(step.operand.where[place], step.operand.home)) for step in self.steps], self.windows)

    def loops(self, rows: slice) -> list[Loops]:
        """Of each other tensor, the loops over its rows."""
        return [value.dims()[rows] for value in self.others]

    def bring(self, box: Sequence[Box], rows: int, words: int, first: int, ring: Ring | None = None) -> list[Span]:
        """Load words ``first`` on of rows of the other tensors, whose loops stand behind two others.

        They are kept in V, or come to another ring of it.
        """
        spans = []
        for number, value in enumerate(self.others, 2):
            span = self.build.v.take(rows * words, kept=True) if ring in (None, self.build.v) else ring.take(
                rows * words)
            for done, skips, lines in box:
                self.build.load_words(value, first, words, span.start + done * words, skip=skips[number],
                                      rows=lines[number])
            spans.append(span)
        return spans

    def work(self, result: Span, spans: Sequence[Span], rows: int, words: int, source: Span | None = None) -> None:
        """Emit the steps, in place, or from ``source`` on."""
        left, own = list(spans), source or result
        for step in self.steps:
            inputs = [own] if step.operand is None else [left[0], own] if step.front else [own, left[0]]
            left, own = left[1:] if step.operand is not None else left, result
            vectors.elementwise(self.build, step.program, rows * words, inputs, [result])
