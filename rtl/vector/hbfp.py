"""The vector unit between block sums and blocks: converters at its input and at its output."""

from dataclasses import dataclass

from amaranth import Module, Mux, signed, unsigned
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hbfp.golden.spec.vector import VectorUnit

from ..convert.encode import Encode, block_beat
from ..fp32.convert import IntToFp32
from ..lib.component import Component
from ..lib.layout import ArrayLayout, StructLayout
from ..lib.names import parameter
from .unit import Vector


def sums_layout(fmt, terms, lanes):
    """One beat of sums of ``terms`` products: integers S, exponents Es of the block pairs, whether one was invalid."""
    return StructLayout({"sum": ArrayLayout(signed(fmt.sum_width(terms)), lanes),
                         "exponent": ArrayLayout(signed(fmt.exponent + 1), lanes),
                         "invalid": ArrayLayout(unsigned(1), lanes)})


class VectorHBFP(Component):
    """Vector unit with HBFP at both ends.

    Each way, FP32 or HBFP is chosen by a pin, which may change only while ``busy`` is low and no block is cut in two.
    Sums are converted as docs/numerics.md, section 4 says, results as section 2 says, with the format's rounding.
    Golden twin: :func:`golden.number.to_fp32.to_fp32`, :class:`golden.vector.unit.Machine`, :func:`golden.bfp.encode`.

    Parameters
    ----------
    unit : golden.spec.vector.VectorUnit
    encode : rtl.convert.encode.Encode.Parameters
        The converter, with as many lanes.
    terms : int
        Products of a block sum.

    Members
    -------
    i_program, i, o, error, clear, busy
        See :class:`rtl.vector.unit.Vector`.
    from_sums, to_blocks : ``In(1)``
        Take beats from ``i_sums`` instead of ``i``; give them to ``o_q`` instead of ``o``.
    i_sums : ``In(stream)``
        Beats of :func:`sums_layout`; the value is S * 2^(Es - 2m).
    o_q : ``Out(stream)``
        Beats of blocks, see :class:`rtl.convert.encode.Encode`.
    i_seed : ``In(stream)``
        Only if rounding is stochastic.

    Raises
    ------
    ValueError
        If the lanes differ.
    """
    kind, area = "vector_hbfp", "control"
    blocked = True

    @dataclass(frozen=True)
    class Parameters:
        unit: VectorUnit = parameter("")
        encode: Encode.Parameters = parameter("")
        terms: int = parameter("t")

        def __post_init__(self):
            if self.unit.lanes != self.encode.lanes:
                raise ValueError(f"Lanes must be the converter's {self.encode.lanes}, not {self.unit.lanes}")

        @classmethod
        def of(cls, design, unit=None):
            """The unit for a design's blocks; its lanes, unless ``unit`` says otherwise, are the converter's.

            Raises
            ------
            ValueError
                If the lanes differ, or the design has no blocks or wide mantissas.
            """
            if not design.blocked:
                raise ValueError(f"Vector unit with HBFP needs arithmetic hbfp, not {design.arithmetic!r}")
            if design.wide:
                raise ValueError(f"Vector unit with HBFP needs mantissas of one width, not wide {design.wide}")
            unit = VectorUnit(lanes=design.encode_lanes) if unit is None else unit
            return cls(unit, Encode.Parameters.of(design), design.format.terms)

    @staticmethod
    def ports(params):
        fmt, lanes = params.encode.format, params.unit.lanes
        members = Vector.ports(params.unit) | {
            "from_sums": In(1), "to_blocks": In(1),
            "i_sums": In(stream.Signature(sums_layout(fmt, params.terms, lanes))),
            "o_q": Out(stream.Signature(block_beat(fmt, lanes)))}
        if fmt.rounding == "stochastic":
            members["i_seed"] = In(stream.Signature(32))
        return members

    def body(self, platform):
        m, params = Module(), self.params
        fmt, terms = params.encode.format, params.terms
        m.submodules.vector = vector = Vector.made(params.unit)
        m.submodules.encode = encode = Encode.made(params.encode)
        connect(m, flipped(self.i_program), vector.i_program)
        connect(m, encode.o, flipped(self.o_q))
        if fmt.rounding == "stochastic":
            connect(m, flipped(self.i_seed), encode.i_seed)
        m.d.comb += [self.error.eq(vector.error), vector.clear.eq(self.clear), self.busy.eq(vector.busy)]

        m.d.comb += [vector.i.valid.eq(Mux(self.from_sums, self.i_sums.valid, self.i.valid)),
                     self.i_sums.ready.eq(vector.i.ready & self.from_sums),
                     self.i.ready.eq(vector.i.ready & ~self.from_sums)]
        sums = self.i_sums.payload
        for lane in range(params.unit.lanes):
            m.submodules[f"convert{lane}"] = convert = IntToFp32(fmt.sum_width(terms), fmt.exponent + 2)
            m.d.comb += [convert.i.eq(sums.sum[lane]), convert.exponent.eq(sums.exponent[lane] - 2 * fmt.magnitude),
                         convert.invalid.eq(sums.invalid[lane]),
                         vector.i.payload[lane].eq(Mux(self.from_sums, convert.o, self.i.payload[lane]))]

        m.d.comb += [encode.i.valid.eq(vector.o.valid & self.to_blocks), encode.i.payload.eq(vector.o.payload),
                     self.o.valid.eq(vector.o.valid & ~self.to_blocks), self.o.payload.eq(vector.o.payload),
                     vector.o.ready.eq(Mux(self.to_blocks, encode.i.ready, self.o.ready))]
        return m
