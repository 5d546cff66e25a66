"""What FP32 operations have in common: ports, parameters, registers at the cuts of the datapath."""

import re
from dataclasses import dataclass

from amaranth import Const, Module
from amaranth.lib.wiring import In, Out

from hbfp.checks import check_choice, check_range
from hbfp.golden.spec.floats import FP32, FloatFormat

from ..lib.component import Component
from ..lib.cuts import Pipeline, choose_cuts
from ..lib.names import parameter


class Operation(Component):
    """An FP32 operation: operands in, one result out, ``pipeline`` cycles later.

    Parameters
    ----------
    fmt : FloatFormat
        Format of operands and result; FP32 unless a small one is tested.
    subnormals : str
        One of :attr:`SUBNORMALS`, the first unless given: ``gradual`` is IEEE 754; ``flush`` treats
        subnormals as zero of their sign on input and output, the output judged after rounding.
    pipeline : int
        Registers between input and output, 0 (combinational) to the number of :attr:`CUTS`.
    enable : bool
        False leaves the port ``en`` out: registers never hold.
    chain : bool
        Whether adders are carry chains where they would be parallel prefixes.

    Members
    -------
    a, b, c : ``In(width)``
        Operands; those that the operation has.
    o : ``Out(width)``
        Result, ``pipeline`` cycles later, one a cycle. A NaN is always the format's one NaN.
    en : ``In(1)``
        Only if pipelined, with ``enable``: while low every register holds.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """
    OPERANDS = ("a", "b")
    SUBNORMALS = ("gradual", "flush")
    #: Whether the format of operands and result is a parameter, or FP32 for good.
    FORMATS = True
    #: Cut name -> share of the combinational delay before it; benchmarks/fp32_area.py measures it.
    CUTS = {"output": 1.0}

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        fmt: FloatFormat = parameter("", FP32)
        subnormals: str = parameter("")
        pipeline: int = parameter("p", 0)
        enable: bool = parameter("free", True)
        chain: bool = parameter("chain", False, rare=True)

        def __post_init__(self):
            if not isinstance(self.fmt, FloatFormat):
                raise ValueError(f"Float format must be a FloatFormat, not {self.fmt!r}")

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        cls.kind = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()

    def __init__(self, *values, **named):
        named.setdefault("subnormals", self.SUBNORMALS[0])
        if not named.get("pipeline"):
            named["enable"] = True    # there is no register to hold
        super().__init__(*values, **named)
        if not self.FORMATS and self.fmt != FP32:
            raise ValueError(f"Float format must be FP32 here, not {self.fmt!r}")
        check_choice("Subnormals", self.params.subnormals, self.SUBNORMALS)
        check_range("Pipeline depth", self.params.pipeline, 0, len(self.CUTS), " cycles")

    @classmethod
    def ports(cls, params):
        enable = {"en": In(1, init=1)} if params.pipeline and params.enable else {}
        return enable | cls.data_ports(params)

    @classmethod
    def data_ports(cls, params):
        """Operands and result."""
        width = params.fmt.width
        return {**{name: In(width) for name in cls.OPERANDS}, "o": Out(width)}

    @property
    def latencies(self):
        """``result``: from operands to result."""
        return {"result": self.params.pipeline}

    @property
    def fmt(self):
        """Format of operands and result."""
        return self.params.fmt

    @property
    def flush(self):
        """Whether subnormals count as zero."""
        return self.params.subnormals == "flush"

    def body(self, platform):
        m = Module()
        pipe = Pipeline(m, choose_cuts(self.CUTS, self.params.pipeline), getattr(self, "en", Const(1)),
                        self.params.chain)
        result, = pipe.cut("output", self.datapath(m, pipe))
        m.d.comb += self.o.eq(result)
        return m

    def datapath(self, m, pipe):
        """Build the operation in ``m`` with its registers from ``pipe``; the result, before the last cut."""
        raise NotImplementedError
