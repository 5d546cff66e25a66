"""The weight buffer of a core whose commands may have sparse weights."""

from dataclasses import dataclass, fields

from amaranth import Cat, Const, Mux, Shape, Signal, signed
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..fixed.booth import BoothRecoder, negative_lines
from ..fixed.packed import packed
from ..lib.layout import ArrayLayout, StructLayout
from ..lib.memory import Ram
from ..lib.names import parameter
from ..lib.skew import delay
from ..number.kinds import number_of
from ..number.number import Number
from .weights import WeightBuffer, weight_buffer_row


class SparseWeightBuffer(WeightBuffer):
    """A :class:`~rtl.array.weights.WeightBuffer` of weights with indices, of which it keeps the offsets.

    The offset of place e among the N of a group is the index less e, at least 0 and at most M - N. Where the array has
    recoded weights, they are recoded here, and what their negative digits leave out is counted by column and segment.

    Parameters
    ----------
    number : rtl.number.sparse.Sparse
        Beside those of any weight buffer.

    Members
    -------
    head : ``Out(heads).array``
        By segment and column group, where columns start from something: that of segment s for column group j from
        ``t + 1 + s * h + j`` on, with ``start`` at t and h groups a segment, until the same cycle of the next tile.
    """

    @dataclass(frozen=True)
    class Parameters(WeightBuffer.Parameters):
        number: Number | None = parameter("", None)

        @property
        def kept(self):
            return self.number.weight

        @property
        def head(self) -> Shape | None:
            """What a column starts from."""
            return self.number.head(self.height)

        @classmethod
        def of(cls, design):
            """The weight buffer of a design."""
            design.require_sparse()
            usual = WeightBuffer.Parameters.of(design)
            return cls(*(getattr(usual, item.name) for item in fields(usual)), number_of(design))

    @staticmethod
    def ports(params):
        row = weight_buffer_row(params)
        row = StructLayout({**row.members, "index": ArrayLayout(params.number.index, params.cols)})
        members = WeightBuffer.ports(params) | {"i": In(stream.Signature(row))}
        if params.head is not None:
            heads = ArrayLayout(params.head, params.group[1])
            members["head"] = Out(heads).array(params.rows // params.height, params.groups)
        return members

    def _rows(self, m, row):
        """Weights, recoded or not, with their offsets."""
        number, payload = self.params.number, self.i.payload
        most = number.group - number.kept
        place, result = row[:(number.kept - 1).bit_length()], []
        self._codes = []
        for column in range(self.params.cols):
            value, index = payload.mantissa[column], payload.index[column]
            weight = Signal(number.weight, name=f"kept{column}")
            ahead = Signal(signed(len(index) + 1), name=f"ahead{column}")
            m.d.comb += [ahead.eq(index - place),
                         weight.offset.eq(Mux(ahead < 0, 0, Mux(ahead > most, most, ahead)))]
            if self.params.head is not None:
                m.submodules[f"recode{column}"] = recode = BoothRecoder(number.width)
                m.d.comb += recode.i.eq(value)
                self._codes.append(recode.o)
                value = packed(recode.o, number.width)
            m.d.comb += weight.value.eq(value)
            result.append(weight)
        return result

    def _scales(self, m, beat, tile_row, slot, released):
        super()._scales(m, beat, tile_row, slot, released)
        if self.params.head is None:
            return
        params, groups, height = self.params, self.params.groups, self.params.height
        opens = Signal()
        m.d.comb += opens.eq(beat & Cat(tile_row == s * height for s in range(params.rows // height)).any())
        totals = []
        for column, code in enumerate(self._codes):
            total = Signal(params.head, name=f"total{column}")
            before = Signal(params.head, name=f"before{column}", reset_less=True)
            # A digit counts at its place, two bits above the last one's.
            added = Cat(Cat(line & beat, Const(0, 1)) for line in negative_lines(code, params.number.width))
            m.d.comb += total.eq((before & ~opens.replicate(len(before))) + added)
            m.d.sync += before.eq(total)
            totals.append(total)
        # Read when a tile starts, and held by the memory until the next one does.
        taken = Signal(range(self.TILES))
        m.d.sync += taken.eq(taken + self.start)
        for s in range(params.rows // height):
            start, tile = (delay(m, value, s * height // params.group[0], f"head{s}_{name}", reset_less=False)
                           for name, value in (("start", self.start), ("tile", taken)))
            for j in range(groups):
                if j:
                    start, tile = (delay(m, value, 1, f"head{s}_{name}{j}", reset_less=False)
                                   for name, value in (("start", start), ("tile", tile)))
                word = Cat(totals[j * params.group[1]:(j + 1) * params.group[1]])
                m.submodules[f"head{s}_{j}"] = bank = Ram(self.TILES, len(word))
                m.d.comb += [bank.w_en.eq(beat & (tile_row == (s + 1) * height - 1)), bank.w_addr.eq(slot),
                             bank.w_data.eq(word), bank.r_en.eq(start), bank.r_addr.eq(tile),
                             self.head[s][j].eq(bank.r_data)]
