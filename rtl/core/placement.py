"""A row of X where the array expects it: what a dense command sends less of is put among what a sparse one would."""

from dataclasses import dataclass

from amaranth import Module, Mux, Shape
from amaranth.lib.wiring import In, Out

from ..lib.component import Component
from ..lib.names import parameter
from ..number.kinds import number_of
from ..number.streams import exponent_bits, row_layout


class Placement(Component):
    """A row of X of a dense command as that of a sparse one of equal products; combinational.

    A dense row has its R elements first. Element ``N q + e`` goes to the place that weights of offset 0 meet, ``M q +
    e``, and the exponent of a block to the last segment that the block takes; what lies elsewhere is of no account.

    Parameters
    ----------
    element : Shape
    rows, kept, group : int
        R, N and M.
    exponent, segments, joined : int
        Bits of an exponent, segments, and how many a dense block takes.

    Members
    -------
    sparse : ``In(1)``
        The row is that of a sparse command: it is passed on as it is.
    i, o : ``In``, ``Out``
        Rows, as on the core's ``i_x``.
    """
    kind, area, apart = "placement", "skew", True

    @dataclass(frozen=True)
    class Parameters:
        element: Shape = parameter("m")
        rows: int = parameter("r")
        kept: int = parameter("n")
        group: int = parameter("g")
        exponent: int = parameter("e")
        segments: int = parameter("s")
        joined: int = parameter("j")

        @property
        def row(self):
            """Layout of a row."""
            return row_layout(self.element, self.rows * self.group // self.kept, self.exponent, self.segments)

        @classmethod
        def of(cls, design):
            """The placement in front of a design's array."""
            design.require_sparse()
            return cls(number_of(design).element, design.rows, *design.sparse, exponent_bits(design), design.segments,
                       design.joined)

    @staticmethod
    def ports(params):
        return {"sparse": In(1), "i": In(params.row), "o": Out(params.row)}

    def body(self, platform):
        m, params = Module(), self.params
        m.d.comb += self.o.eq(self.i)
        for row in range(params.rows):
            q, e = divmod(row, params.kept)
            into = q * params.group + e
            m.d.comb += self.o.mantissa[into].eq(Mux(self.sparse, self.i.mantissa[into], self.i.mantissa[row]))
        for block in range(params.segments // params.joined):
            into = (block + 1) * params.joined - 1
            for name in ("exponent", "invalid"):
                field, given = getattr(self.o, name), getattr(self.i, name)
                m.d.comb += field[into].eq(Mux(self.sparse, given[into], given[block]))
        return m
