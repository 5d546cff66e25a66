"""The vector unit, untimed and bit exact: executes instruction words on rows of FP32 bit patterns.

Arithmetic is that of :mod:`golden.vector.arithmetic` and of :mod:`golden.functions`. Sums are formed in the
hardware's order: each lane adds its elements in the order of the beats, starting from -0, then neighbouring
lanes are added in a tree: (0, 1), (2, 3) ..., then pairs of those.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from hbfp.checks import check_kind, check_range

from .. import functions
from ..fast import functions as fast
from ..number.arrays import check_shape, listed, patterns
from ..position import dropped
from ..spec.vector import (
    BELOW_BITS,
    CONSTANTS,
    DROPPING,
    KEY_BITS,
    KIND,
    PLACE_BITS,
    POSTS,
    SCALARS,
    STEP_BITS,
    Kind,
    Op,
    Reduce,
    Source,
    Target,
    VectorInstruction,
    VectorUnit,
    field_values,
    length_of,
)
from .arithmetic import SIGN, add, larger, mul

#: Elements from which the compiled functions are worth their compilation, about a second each.
LARGE = 1 << 17
#: What a sum and a maximum start from.
IDENTITY = {Reduce.SUM: 0x80000000, Reduce.MAX: 0xFF800000}
#: What a row or a scalar holds before it is written: undefined in hardware, a NaN here.
UNDEFINED = 0x7FC00000


class ReservedInstruction(ValueError):
    """The unit's error status: a word that it must not execute."""


def check(word: int, unit: VectorUnit) -> None:
    """Raise :class:`ReservedInstruction` unless ``unit`` may execute ``word``."""
    check_range("Word", word, 0, (1 << 64) - 1)
    check_kind("Unit", unit, VectorUnit)
    _check(word, unit)


@lru_cache(4096)    # programs run many times
def _check(word, unit):
    f = field_values(word)

    def need(condition, what):
        if not condition:
            raise ReservedInstruction(f"VectorInstruction 0x{word:016X} is reserved: {what}")

    need(f["kind"] in tuple(Kind) and (unit.dropping or f["kind"] not in (Kind.KEY, Kind.PLACE)), "kind")
    if f["kind"] == Kind.SET:
        need(word >> 36 & 0xFFFFFF == 0, "unused bits")
    elif f["kind"] == Kind.LENGTH:
        elements, rows = length_of(word)
        need(1 <= elements <= (unit.lanes if rows else unit.longest), "length")
        need(rows == 0 or 2 <= rows <= unit.short_rows, "rows")
    elif f["kind"] == Kind.ARGUMENT:
        need(word & (1 << KIND) - 1 & ~(15 << 32 | 15) == 0, "unused bits")
        need(1 <= word & 15 <= unit.arguments, "argument")
    elif f["kind"] == Kind.KEY:
        need(word >> KEY_BITS + BELOW_BITS & (1 << KIND - KEY_BITS - BELOW_BITS) - 1 == 0, "unused bits")
    elif f["kind"] != Kind.PLACE:
        scalar = f["kind"] == Kind.SCALAR
        need(f["spare"] == 0 and (unit.dropping and not scalar or not any(f[name] for name in DROPPING)), "unused bits")
        need(f["op"] in tuple(Op), "operation")
        need(f["post"] in unit.posts, "function")
        need(f["reduce"] in tuple(Reduce) and not (scalar and f["reduce"]), "reduction")
        need(f["target"] != (Target.REGISTER if scalar else Target.SCALAR), "target")
        need(not (scalar and f["target"] == Target.STREAM), "target")
        need(f["target"] != Target.REGISTER or f["target_index"] < unit.registers, "target")
        for name in "abc":
            source, index = f[f"{name}_source"], f[name]
            need(source != Source.CONSTANT or index < len(CONSTANTS), "constant")
            need(source != Source.REGISTER or index < unit.registers and not scalar, "register")
            need(source != Source.STREAM or index == 0 and not scalar, "stream")


class Machine:
    """State of one vector unit, or of many that run one program on different rows.

    Parameters
    ----------
    unit : VectorUnit
    shape : tuple of int
        Units side by side; () is one.

    Attributes
    ----------
    registers : uint32 array, (registers, shape, longest)
    scalars : uint32 array, (16, shape)
    length : int
        Elements of a row; ``unit.longest`` at reset.
    rows : int
        Rows of one beat that a pass takes; 0 if it takes one of any length.
    several : uint32 array, (16, shape, short rows)
        Scalars that passes over several rows have put, a number for each row; ``many`` has which scalars these are.
    arguments : sequence of int
        Bit patterns of the values from outside; the first has number 1.
    seed : int
        The part of every key that comes from outside.
    key, below : int
        The other part, and what the numbers of dropout are compared with.
    place : int array, (shape)
        Of the first beat of the next pass that drops, in its tensor, in beats; ``step`` further of the one after it.
    """

    def __init__(self, unit: VectorUnit | None = None, shape: tuple[int, ...] = ()) -> None:
        self.unit = VectorUnit() if unit is None else unit
        check_kind("Unit", self.unit, VectorUnit)
        check_shape("Shape", shape)
        self.shape = tuple(shape)
        self.registers = np.full((self.unit.registers, *self.shape, self.unit.longest), UNDEFINED, dtype=np.uint32)
        self.scalars = np.full((SCALARS, *self.shape), UNDEFINED, dtype=np.uint32)
        self.length, self.rows = self.unit.longest, 0
        self.several = np.full((SCALARS, *self.shape, self.unit.short_rows), UNDEFINED, dtype=np.uint32)
        self.many: set[int] = set()
        self.arguments: Sequence[int] = (UNDEFINED,) * self.unit.arguments
        self.seed = self.key = self.below = self.step = 0
        self.place = np.zeros(self.shape, np.int64)

    @property
    def span(self) -> int:
        """Numbers of a pass: of a row, or all lanes of the beats of several."""
        return self.rows * self.unit.lanes or self.length

    def run(self, program: Iterable[VectorInstruction | int], inputs: Iterable[np.ndarray] = ()) -> list[np.ndarray]:
        """Execute a program.

        Parameters
        ----------
        program : iterable of VectorInstruction or int
            Instructions or their words.
        inputs : sequence of arrays
            Rows for the passes that read the stream, in their order, each ``shape + (length,)`` or what
            broadcasts to it, as ``uint32`` bit patterns; of several rows of one beat all lanes of each.

        Returns
        -------
        list of uint32 arrays
            Rows that went to the output stream; of several rows of one beat all lanes, those beyond the length with
            numbers that mean nothing.

        Raises
        ------
        ReservedInstruction
            At the first word that is not legal. The instructions before it have been executed; it has changed
            nothing.
        ValueError
            If there are more or fewer rows than passes that read the stream.
        """
        rows, outputs = iter(listed(inputs, "Inputs")), []
        for item in listed(program, "Program"):
            word = item.encode() if isinstance(item, VectorInstruction) else item
            check(word, self.unit)
            result = self._step(word, field_values(word), rows)
            if result is not None:
                outputs.append(result)
        if (left := sum(1 for _ in rows)):
            raise ValueError(f"Input rows must be as many as the program reads, not {left} more")
        return outputs

    def _step(self, word, f, rows):
        if f["kind"] in (Kind.SET, Kind.ARGUMENT):
            set_ = f["kind"] == Kind.SET
            self.scalars[word >> 32 & 15] = word & 0xFFFFFFFF if set_ else self.arguments[(word & 15) - 1]
            self.many.discard(word >> 32 & 15)
            return None
        if f["kind"] == Kind.LENGTH:
            self.length, self.rows = length_of(word)
            return None
        if f["kind"] == Kind.KEY:
            self.key, self.below = word & (1 << KEY_BITS) - 1, word >> KEY_BITS & (1 << BELOW_BITS) - 1
            return None
        if f["kind"] == Kind.PLACE:
            self.place = np.full(self.shape, word & (1 << PLACE_BITS) - 1, np.int64)
            self.step = word >> PLACE_BITS & (1 << STEP_BITS) - 1
            return None
        once = f["kind"] == Kind.SCALAR
        whole = (*self.shape, self.rows or 1 if once else self.span)
        row = None
        if Source.STREAM in (f["a_source"], f["b_source"], f["c_source"]):
            try:
                row = next(rows)
            except StopIteration:
                raise ValueError("Input rows must be as many as the program reads, not fewer") from None
            row = patterns(row, "Input row").astype(np.uint32, copy=False)
            try:
                row = np.broadcast_to(row, whole)
            except ValueError:
                raise ValueError(f"Input row must broadcast to shape {whole}, not {row.shape}") from None
        a, b, c = (self._operand(f[f"{name}_source"], f[name], row, whole) for name in "abc")
        if f["drop"]:
            b = np.where(self._dropped(), np.uint32(0), b)
        result = self._compute(f, a, b, c)
        if f["reduce"]:
            each = result.reshape(*self.shape, self.rows, -1)[..., :self.length] if self.rows else result[..., None, :]
            self._put(f["reduce_index"], self._reduce(Reduce(f["reduce"]), each))
        match f["target"]:
            case Target.REGISTER:
                self.registers[f["target_index"], ..., :self.span] = result
            case Target.SCALAR:
                self._put(f["target_index"], result)
            case Target.STREAM:
                return result
        return None

    def _put(self, index, values):
        """Put a scalar, or one for each of several rows."""
        if self.rows:
            self.several[index, ..., :self.rows] = values
            self.many.add(index)
        else:
            self.scalars[index] = values[..., 0]
            self.many.discard(index)

    def _dropped(self):
        """Which elements of the row of this pass are dropped; the next one's are further on."""
        beats = self.place[..., None] + np.arange(-(-self.span // self.unit.lanes))
        found = dropped(self.key ^ self.seed, beats, self.below, self.unit.lanes)
        self.place = self.place + self.step
        return found.reshape(*self.shape, -1)[..., :self.span]

    def _operand(self, source, index, row, whole):
        match source:
            case Source.CONSTANT:
                return np.full(whole, CONSTANTS[index], dtype=np.uint32)
            case Source.REGISTER:
                return self.registers[index, ..., :whole[-1]]
            case Source.SCALAR:
                if self.rows and index in self.many:
                    return np.repeat(self.several[index, ..., :self.rows], whole[-1] // self.rows, axis=-1)
                return np.broadcast_to(self.scalars[index][..., None], whole)
            case Source.STREAM:
                return row

    @staticmethod
    def _compute(f, a, b, c):
        """post(op(a, b, c))."""
        a, c = a ^ SIGN * np.uint32(f["negate_a"]), c ^ SIGN * np.uint32(f["negate_c"])
        match f["op"]:
            case Op.MULADD:
                value = add(mul(a, b), c)
            case Op.MAX:
                value = larger(a, b)
            case Op.GATE:
                value = np.where(positive(a), b, np.uint32(0))
        return second_step(POSTS[f["post"]], value)

    def _reduce(self, how, x):
        """Sum or maximum of each row, in the order of the lanes."""
        lanes, step = self.unit.lanes, add if how == Reduce.SUM else larger
        beats = -(-x.shape[-1] // lanes)
        padded = np.full((*x.shape[:-1], beats * lanes), IDENTITY[how], dtype=np.uint32)
        padded[..., :x.shape[-1]] = x
        total = np.full((*x.shape[:-1], lanes), IDENTITY[how], dtype=np.uint32)
        for beat in range(beats):
            total = step(total, padded[..., beat * lanes:(beat + 1) * lanes])
        while total.shape[-1] > 1:
            total = step(total[..., ::2], total[..., 1::2])
        return total[..., 0]


def second_step(post: str, x: np.ndarray) -> np.ndarray:
    """One of :data:`~golden.spec.vector.POSTS`, by its name, of each bit pattern."""
    match post:
        case "none":
            return x
        case "relu":
            return relu(x)
    return (fast if x.size >= LARGE else functions).evaluate(post, x)


def positive(x: np.ndarray) -> np.ndarray:
    """Whether x > 0; false for NaN, zeros and subnormals."""
    return (x >> 31 == 0) & (x >> 23 > 0) & (x <= 0x7F800000)


def relu(x: np.ndarray) -> np.ndarray:
    """x where x > 0 or NaN, else +0."""
    return np.where(positive(x) | ((x & 0x7FFFFFFF) > 0x7F800000), x, np.uint32(0))
