"""Pieces that every FP32 operation shares: fields, shifters, the rounder, the pipeline cuts."""

import re
from itertools import combinations

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from golden.spec.floats import FP32, FloatFormat
from golden.spec.format import check_choice, check_range

from ..cell import Cell


def named(m, value, name=None):
    """Give ``value`` a signal, so that using it twice does not emit it twice."""
    signal = Signal(value.shape(), name=name, src_loc_at=1)
    m.d.comb += signal.eq(value)
    return signal


class Fields:
    """Sign, exponent field and fraction of one operand, with the tests that operations need."""

    def __init__(self, m, fmt, value, name):
        self.fmt = fmt
        self.fraction = value[:fmt.fraction]
        self.exponent = value[fmt.fraction:fmt.width - 1]
        self.sign = value[fmt.width - 1]
        self.magnitude = value[:fmt.width - 1]
        self.nonzero_exponent = named(m, self.exponent.any(), f"{name}_nonzero_exponent")
        self.top = named(m, self.exponent.all(), f"{name}_top")
        self.nonzero_fraction = named(m, self.fraction.any(), f"{name}_nonzero_fraction")

    @property
    def nan(self):
        """Any NaN, quiet or signalling."""
        return self.top & self.nonzero_fraction

    @property
    def inf(self):
        """Either infinity."""
        return self.top & ~self.nonzero_fraction


def shift_right_sticky(m, value, amount, kept):
    """Logical right shift of ``value``, extended below to ``kept`` bits; lost ones go to a sticky bit.

    Parameters
    ----------
    value : Value
        Number to shift; its top bit is the top bit of the result.
    amount : Value
        Unsigned distance; every bit costs one stage.
    kept : int
        Bits of the result.

    Returns
    -------
    (Signal, Signal)
        Shifted value, ``kept`` bits, and whether a one was shifted out.
    """
    value = Cat(Const(0, kept - len(value)), value) if kept > len(value) else value
    lost = []
    for stage in range(len(amount)):
        step, value = 1 << stage, named(m, value, f"right{stage}")
        lost.append(amount[stage] & value[:step].any())
        value = Mux(amount[stage], value >> step if step < kept else Const(0, kept), value)[:kept]
    return named(m, value, "shifted"), named(m, Cat(lost).any(), "sticky")


def normalise(m, value, fill=0, stages=None):
    """Left shift until the top bit is one, testing and shifting by halves of the width.

    Each stage that tests its top bits for zero yields one bit of the leading zero count, so no
    separate counter is needed.

    Parameters
    ----------
    value : Value
        Number to normalise.
    fill : Value or int
        One bit that enters from below.

    Returns
    -------
    (Signal, Value)
        Shifted value of the same width, and the leading zero count. A value of all zeros with
        ``fill`` 0 stays zero, with the largest count.
    """
    width, count = len(value), []
    if stages is None:
        stages = (width - 1).bit_length()
    fill = Const(fill, 1) if isinstance(fill, int) else fill
    for stage in reversed(range(stages)):
        step, value = 1 << stage, named(m, value, f"left{stage}")
        empty = named(m, ~value[-step:].any(), f"empty{stage}")
        value = Mux(empty, Cat(fill.replicate(step), value)[:width], value)
        count.insert(0, empty)
    return named(m, value, "normal"), Cat(count)


class Pipeline:
    """Places registers at the named cuts of a datapath.

    Parameters
    ----------
    m : Module
        Module that the datapath is built in.
    depth : int
        Registers between input and output.
    cuts : dict of str to float
        Places where a register may stand, in order, with the share of the combinational delay
        that lies before it. The last one is the output.
    en : Value
        Registers hold while low.
    """

    def __init__(self, m, depth, cuts, en):
        self.m, self.en, self.cuts = m, en, cuts
        self.active = choose_cuts(cuts, depth)

    def cut(self, name, *values):
        """Delay every value by the registers at cut ``name``; ``None`` passes through."""
        if name not in self.active:
            return values
        out = []
        for value in values:
            if value is None:
                out.append(None)
                continue
            held = Signal.like(value if isinstance(value, Signal) else Signal(value.shape()), name=f"{name}_held")
            with self.m.If(self.en):
                self.m.d.sync += held.eq(value)
            out.append(held)
        return tuple(out)


def choose_cuts(cuts, depth):
    """The ``depth`` cuts whose slowest segment is shortest; ties go to the later register."""
    best = None
    for chosen in combinations(cuts, depth):
        marks = [0.0, *(cuts[name] for name in chosen), 1.0]
        cost = max(high - low for low, high in zip(marks, marks[1:], strict=False))
        if best is None or cost <= best[0]:
            best = cost, chosen
    return frozenset(best[1])


class Operation(Cell):
    """An FP32 operation: operands in, one result out, ``pipeline`` cycles later.

    Parameters
    ----------
    fmt : FloatFormat
        Format of operands and result; FP32 unless a small one is tested.
    subnormals : str
        One of :attr:`SUBNORMALS`, the first unless given: ``flush`` treats subnormals as zero of
        their sign on input and output, the output judged after rounding; ``gradual`` is IEEE 754.
    pipeline : int
        Registers between input and output, 0 (combinational) to the number of cuts.

    Members
    -------
    a, b, c : ``In(width)``
        Operands; those that the operation has.
    o : ``Out(width)``
        Result, :attr:`LATENCY` cycles later. A NaN is always the format's one NaN.
    en : ``In(1)``
        Only if pipelined: while low every register holds.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """
    OPERANDS = ("a", "b")
    SUBNORMALS = ("flush",)
    #: Attributes that tell one module from another; the format and the class do, too.
    PARAMETERS = ("subnormals", "pipeline", "underflow", "source", "integer_width", "exponent_width")
    #: Cut name -> share of the combinational delay before it.
    CUTS = {}

    def __init__(self, fmt=FP32, *, subnormals=None, pipeline=0, ports=None):
        subnormals = self.SUBNORMALS[0] if subnormals is None else subnormals
        if not isinstance(fmt, FloatFormat):
            raise ValueError(f"Float format must be a FloatFormat, not {fmt!r}")
        check_choice("Subnormals", subnormals, self.SUBNORMALS)
        check_range("Pipeline depth", pipeline, 0, len(self.CUTS), " cycles")
        self.fmt, self.subnormals, self.pipeline = fmt, subnormals, pipeline
        members = ports or {**{name: In(fmt.width) for name in self.OPERANDS}, "o": Out(fmt.width)}
        if pipeline:
            members = {"en": In(1, init=1), **members}
        super().__init__(members)

    @property
    def LATENCY(self):  # noqa: N802 - an attribute by convention of this project
        """Cycles from operands to result."""
        return self.pipeline

    @property
    def module(self):
        """Name of the Verilog module."""
        kind = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()
        words = [getattr(self, name) for name in ("fmt", *self.PARAMETERS) if hasattr(self, name)]
        words = [f"e{word.exponent}f{word.fraction}" if isinstance(word, FloatFormat) else str(word) for word in words]
        return "_".join(["hbfp", kind, *words])

    def body(self, platform):
        m = Module()
        pipe = Pipeline(m, self.pipeline, self.CUTS, self.en if self.pipeline else Const(1))
        self.datapath(m, pipe)
        return m
