"""FP32 functions: argument reduction, two tables, one product. Golden twin: :mod:`golden.functions`.

One datapath serves any set of functions and holds only what the set needs (docs/design/03-functions.md)::

    result = A * G [+ k ln 2],   G = B | E 2^k | B E 2^k | 1 - B E 2^k
"""

from dataclasses import dataclass
from functools import cached_property, partial

from amaranth import Module
from amaranth.lib.wiring import In, Out

from hbfp.checks import check_choice
from hbfp.functions import FUNCTIONS, parts
from hbfp.golden.spec.floats import FP32

from ...lib.names import parameter
from ..multiply import MULTIPLIERS
from ..operation import Operation, Pipeline
from ..raw import Fields
from .path import Path
from .product import multiply, second_factor
from .reduction import reduce_exponent, table_address
from .result import is_special, pack, special_code
from .tables import evaluate_tables


class Function(Operation):
    """One FP32 function of a set, chosen by ``select`` each time: ``o`` is the function of ``a``.

    Subnormal inputs count as zero, results below 2^-126 after rounding are zero, both with their sign.

    Parameters
    ----------
    functions : sequence of str
        Of ``exp log recip rsqrt tanh sigmoid gelu silu normcdf``; the order numbers them for ``select``.
    subnormals : str
        ``flush`` only: no function has an IEEE definition to be faithful to.
    pipeline : int
        Registers between input and output, 0 to the number of cuts that the set has.
    multiplier : str
        As in :class:`~rtl.fp32.times.Times`: equal bits.

    Members
    -------
    a : ``In(32)``
        Operand.
    select : ``In(n)``
        Only with more than one function: its position in ``functions``. Others give an undefined result.
    o : ``Out(32)``
        Result, ``pipeline`` cycles later; a NaN is always 0x7FC00000.
    en : ``In(1)``
        Only if pipelined: while low every register holds.

    Raises
    ------
    ValueError
        If a function is unknown or named twice, or the pipeline is deeper than there are cuts.
    """
    OPERANDS = ("a",)
    SUBNORMALS = ("flush",)
    FORMATS = False

    @dataclass(frozen=True)
    class Parameters(Operation.Parameters):
        functions: tuple[str, ...] = parameter("", FUNCTIONS)
        multiplier: str = parameter("", "plain", rare=True)

        def __post_init__(self):
            super().__post_init__()
            check_choice("Multiplier", self.multiplier, MULTIPLIERS)
            names = (self.functions,) if isinstance(self.functions, str) else tuple(self.functions)
            object.__setattr__(self, "functions", names)
            if not names:
                raise ValueError("Functions must name at least one")
            for name in names:
                if name not in FUNCTIONS:
                    raise ValueError(f"Function must be one of {', '.join(FUNCTIONS)}, not {name!r}")
            if len(set(names)) < len(names):
                raise ValueError(f"Functions must differ, not {', '.join(names)}")

    @classmethod
    def data_ports(cls, params):
        ports = {"a": In(32), "o": Out(32)}
        return ports | ({"select": In(range(len(params.functions)))} if len(params.functions) > 1 else {})

    @property
    def functions(self):
        """Names of the functions, by their position."""
        return self.params.functions

    @property
    def need(self):
        """The same as a set."""
        return set(self.functions)

    @cached_property
    def CUTS(self):  # noqa: N802 - a constant for any one set of functions
        """A cut behind every part that the set has."""
        delays = parts(self.functions)
        whole, before, cuts = sum(delays.values()), 0.0, {}
        for name, delay in delays.items():
            before += delay
            cuts[name] = before / whole
        return cuts

    def datapath(self, m: Module, pipe: Pipeline):
        path = Path(m, pipe, self.CUTS, self.functions, self.select if len(self.functions) > 1 else None,
                    self.params.multiplier)
        x = Fields(m, FP32, self.a, "a")
        path.live |= dict(sign=x.sign, exponent=x.exponent, fraction=x.fraction, special=is_special(path, x),
                          code=special_code(path, x, self.a))
        reduce_exponent(path)
        if self.need != {"exp"}:
            table_address(path)
        evaluate_tables(path)
        second_factor(path)
        multiply(path)
        return pack(path)


#: Unit name -> constructor with its keyword arguments, for :mod:`rtl.fp32.units`.
FUNCTION_UNITS = {f"fp32.{name}": partial(Function, (name,)) for name in FUNCTIONS} | {"fp32.function": Function}
