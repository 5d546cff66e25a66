# amaranth: UnusedElaboratable=no
"""Units of arithmetic by themselves, judged by the operands of their own tests, beside golden twins.

A module has one text wherever it is used: a change of it in a design is one of the netlist of the unit alone, too.
"""

import ctypes
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from amaranth import Module, signed
from amaranth.lib.wiring import In, Out

from golden import fp32
from golden.fast.functions import evaluate
from golden.spec.floats import FP32
from hbfp.format import HBFPFormat
from hbfp.functions import FUNCTIONS
from rtl.convert.encode_lane import EncodeLane
from rtl.fp32.arith import Add
from rtl.fp32.functions.unit import Function
from rtl.fp32.units import FP32_UNITS
from rtl.lib.component import Component
from tests.rtl.convert import test_encode
from tests.rtl.fp32 import table, test_scaled_add
from tests.rtl.fp32.functions import test_unit

from .netlist import PORT, Mutant, Netlist, netlist

_DRIVER = """\
#include "Vdut.h"
extern "C" __attribute__((visibility("default")))
void play(uint32_t number, long count, long delay, const uint64_t* const* in, uint64_t* out) {
    VerilatedContext context;
    Vdut top{&context};
    top.PORT = number;
    for (long i = 0; i < count + delay; ++i) {
        const long at = i < count ? i : count - 1;
        SET
        top.eval();
        if (i >= delay) out[i - delay] = top.o;
        CLOCK
    }
}
"""


class Sum(Component):
    """The two steps of :class:`tests.rtl.fp32.test_scaled_add.Sum`, for integers of so many bits."""
    kind = "sum"

    @dataclass(frozen=True)
    class Parameters:
        width: int
        exponent: int

    @property
    def module(self):
        return f"sum_{self.params.width}"

    @staticmethod
    def ports(params):
        return {"a": In(32), "i": In(signed(params.width)), "scale": In(params.exponent + 1), "o": Out(32)}

    def body(self, platform):
        m = Module()
        m.submodules.both = both = test_scaled_add.Sum(FP32, self.params.width, self.params.exponent)
        m.d.comb += [both.a.eq(self.a), both.i.eq(self.i), both.scale.eq(self.scale), self.o.eq(both.o)]
        return m


class Unit:
    """A unit beside its twin.

    Parameters
    ----------
    test : str
        The test that gives it these operands.
    make : callable, *arguments
        Gives the component; it has an output ``o``.
    operands : callable
        Gives arrays by the names of inputs, and what is expected.
    """

    def __init__(self, test: str, operands: Callable[[], tuple[Mapping[str, np.ndarray], np.ndarray]],
                 make: Callable, *arguments) -> None:
        self.test, self._operands, self._made = test, operands, (make, arguments)

    @property
    def netlist(self) -> Netlist:
        """Of the unit with all that is in it."""
        make, arguments = self._made
        return netlist(make, *arguments)

    @cached_property
    def _given(self):
        given, expected = self._operands()
        given = {name: np.ascontiguousarray(np.broadcast_to(value, expected.shape).astype(np.int64)).view(np.uint64)
                 for name, value in given.items()}
        return given, expected.astype(np.uint64)

    def judges(self, mutants: list[Mutant]) -> Callable[[int], str]:
        """From the number of a change, from 1 on, to the test that sees it, or nothing.

        Raises
        ------
        RuntimeError
            If it is wrong without a change.
        """
        make, arguments = self._made
        component, (given, expected) = make(*arguments), self._given
        widths = {name: len(getattr(component, name)) for name in given}
        sets = [f"top.{name} = in[{n}][at] & {(1 << width) - 1:#x}ull;" for n, (name, width) in enumerate(
            widths.items())]
        delay = component.latencies.get("result", 0)
        sets += ["top.en = 1; top.clk = 0;"] if delay else []
        driver = _DRIVER.replace("PORT", PORT).replace("SET", " ".join(sets)).replace(
            "CLOCK", "top.clk = 1; top.eval();" if delay else "")
        play = ctypes.CDLL(str(self.netlist.library(mutants, {"driver.cpp": driver}))).play
        pointers = (ctypes.c_void_p * len(given))(*(value.ctypes.data for value in given.values()))

        def judge(number):
            found = np.empty(len(expected), np.uint64)
            play(number, ctypes.c_long(len(expected)), ctypes.c_long(delay), pointers,
                 ctypes.c_void_p(found.ctypes.data))
            return "" if np.array_equal(found, expected) else self.test
        if judge(0):
            raise RuntimeError(f"{self.test}: wrong without a change")
        return judge


def _pairs(name, twin):
    """Operands of a flushing unit of two operands."""
    def operands():
        a, b = table.TABLE[name][1](200_000, 1)
        return {"a": a, "b": b}, twin(a, b)
    return operands


def _sums(width, exponent=12):
    """Operands of a scaled sum, by its integer's bits."""
    def operands():
        a, i, scale, invalid = test_scaled_add.random_operands(FP32, width)
        return {"a": a, "i": i, "scale": scale & (1 << exponent) - 1 | invalid << exponent}, test_scaled_add.expected(
            FP32, width, a, i, scale, invalid)
    return operands


def _functions():
    """Operands of all functions."""
    x = test_unit.inputs(20_000)
    return ({"a": np.tile(x, len(FUNCTIONS)), "select": np.repeat(np.arange(len(FUNCTIONS)), len(x))},
            np.concatenate([evaluate(name, x) for name in FUNCTIONS]))


def _lane():
    """Operands of a lane of a converter."""
    given, expected = test_encode.lane(_LANE)
    return {name: np.array(values) for name, values in given.items()}, np.array(expected) & (1 << _LANE.mantissa) - 1


_UNITS, _SUMS, _FUNCTIONS, _LANES = ("tests/rtl/fp32/test_units.py", "tests/rtl/fp32/test_scaled_add.py",
                                     "tests/rtl/fp32/functions/test_unit.py", "tests/rtl/convert/test_encode.py")
_LANE = HBFPFormat(mantissa=8, exponent=9, block=(1, 2))


def _flushing(name, **parameters):
    make = FP32_UNITS[name]
    return make(subnormals="flush", **parameters)


def _positive():
    return Add(subnormals="flush", underflow="positive")


def _function():
    return Function(FUNCTIONS, pipeline=4)


#: Units, each of which judges changes of its own modules.
UNITS = [
    *(Unit(_UNITS, _pairs(name, lambda a, b, name=name: table.TABLE[name][0](a, b, FP32, "flush")), _flushing, name)
      for name in ("fp32.add", "fp32.mul", "fp32.max")),
    Unit(_UNITS, _pairs("fp32.add", lambda a, b: fp32.add(a, b, FP32, "flush", "positive")), _positive),
    *(Unit(_SUMS, _sums(width), Sum, width, 12) for width in (15, 18)),
    Unit(_FUNCTIONS, _functions, _function),
    Unit(_LANES, _lane, EncodeLane, _LANE),
]


def alone(netlist: Netlist, mutants: list[Mutant], units: Iterable[Unit] = UNITS) -> Callable[[int], str]:
    """As :meth:`Unit.judges`, of changes of a design: nothing of those that no unit has."""
    found: dict[int, Callable[[], str]] = {}
    for unit in units:
        own = [number for number, mutant in enumerate(mutants, 1) if mutant.module in unit.netlist.uses
               and unit.netlist.digest(mutant.module) == netlist.digest(mutant.module)]
        if own:
            judge = unit.judges([mutants[number - 1] for number in own])
            found |= {number: partial(judge, place) for place, number in enumerate(own, 1)}
    return lambda number: found[number]() if number in found else ""
