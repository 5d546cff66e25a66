"""The vector unit between block sums and blocks: converters at its input and at its output."""

from amaranth import Module, Mux, signed, unsigned
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from golden.spec.vector import VectorUnit

from .cell import Cell
from .encode import Encode, encoded_layout
from .fp32.convert import IntToFp32
from .layout import ArrayLayout, StructLayout
from .vector import Vector


def sums_layout(design):
    """One beat of block sums: integers S, exponents Es of the block pairs, and whether a block was invalid."""
    fmt, lanes = design.format, design.encode_lanes
    return StructLayout({"sum": ArrayLayout(signed(fmt.sum_width(fmt.terms)), lanes),
                         "exponent": ArrayLayout(signed(fmt.exponent + 1), lanes),
                         "invalid": ArrayLayout(unsigned(1), lanes)})


class VectorHBFP(Cell):
    """Vector unit with HBFP at both ends.

    Each way, FP32 or HBFP is chosen by a pin, which may change only while ``busy`` is low and no block is cut in two.
    Sums are converted as docs/numerics.md, section 4 says, results as section 2 says, with the format's rounding.
    Golden twin: :func:`golden.convert.to_fp32`, :class:`golden.vector.Machine`, :func:`golden.bfp.encode`.

    Parameters
    ----------
    design : golden.spec.config.Design
        Its format, and ``encode_lanes``, the unit's lanes.
    unit : golden.spec.vector.VectorUnit, optional
        Its lanes must be ``design.encode_lanes``.

    Members
    -------
    i_program, i, o, error, clear, busy
        As of :class:`rtl.vector.Vector`.
    from_sums, to_blocks : ``In(1)``
        Take beats from ``i_sums`` instead of ``i``; give them to ``o_q`` instead of ``o``.
    i_sums : ``In(stream)``
        Beats of :func:`sums_layout`; the value is S * 2^(Es - 2m).
    o_q : ``Out(stream)``
        Beats of blocks, see :class:`rtl.encode.Encode`.
    i_seed : ``In(stream)``
        Only if rounding is stochastic.

    Raises
    ------
    ValueError
        If the lanes differ or the design has no blocks.
    """
    kind = "vector_hbfp"

    def __init__(self, design, unit=None):
        if not design.blocked:
            raise ValueError(f"Vector unit with HBFP needs arithmetic hbfp, not {design.arithmetic!r}")
        unit = VectorUnit(lanes=design.encode_lanes) if unit is None else unit
        if unit.lanes != design.encode_lanes:
            raise ValueError(f"Lanes must be the converter's {design.encode_lanes}, not {unit.lanes}")
        self.design, self.unit = design, unit
        fmt = design.format
        members = Vector.ports(unit) | {
            "from_sums": In(1), "to_blocks": In(1), "i_sums": In(stream.Signature(sums_layout(design))),
            "o_q": Out(stream.Signature(encoded_layout(design)))}
        if fmt.rounding == "stochastic":
            members["i_seed"] = In(stream.Signature(32))
        super().__init__(members, m=fmt.mantissa, e=fmt.exponent, t=fmt.terms, q=design.encode_beats, n=fmt.rounding,
                         s=fmt.subnormals, **Vector.parameters(unit))

    def body(self, platform):
        m, design = Module(), self.design
        fmt = design.format
        m.submodules.vector = vector = Vector(self.unit)
        m.submodules.encode = encode = Encode(design)
        connect(m, flipped(self.i_program), vector.i_program)
        connect(m, encode.o, flipped(self.o_q))
        if fmt.rounding == "stochastic":
            connect(m, flipped(self.i_seed), encode.i_seed)
        m.d.comb += [self.error.eq(vector.error), vector.clear.eq(self.clear), self.busy.eq(vector.busy)]

        m.d.comb += [vector.i.valid.eq(Mux(self.from_sums, self.i_sums.valid, self.i.valid)),
                     self.i_sums.ready.eq(vector.i.ready & self.from_sums),
                     self.i.ready.eq(vector.i.ready & ~self.from_sums)]
        sums = self.i_sums.payload
        for lane in range(self.unit.lanes):
            m.submodules[f"convert{lane}"] = convert = IntToFp32(fmt.sum_width(fmt.terms), fmt.exponent + 2)
            m.d.comb += [convert.i.eq(sums.sum[lane]), convert.exponent.eq(sums.exponent[lane] - 2 * fmt.magnitude),
                         convert.invalid.eq(sums.invalid[lane]),
                         vector.i.payload[lane].eq(Mux(self.from_sums, convert.o, self.i.payload[lane]))]

        m.d.comb += [encode.i.valid.eq(vector.o.valid & self.to_blocks), encode.i.payload.eq(vector.o.payload),
                     self.o.valid.eq(vector.o.valid & ~self.to_blocks), self.o.payload.eq(vector.o.payload),
                     vector.o.ready.eq(Mux(self.to_blocks, encode.i.ready, self.o.ready))]
        return m
