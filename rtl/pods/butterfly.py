"""Butterflies: copies of a banyan side by side."""

from amaranth import Cat, Module

from hbfp.golden.spec.networks import ButterflyUnit

from ..lib.skew import delay
from .column import Column
from .network import Network, Round
from .pick import Pick


class Butterfly(Network):
    """A butterfly-k: k = 2^e copies of a banyan of log2 N columns, e stages before them and e behind.

    All copies have what enters; e registers before them make room for that. The e stages behind choose for each output
    the copy that has its payload. In a copy there is one way from an input to an output, and ways of different inputs
    must not meet; what one input sends to several outputs shares its links.

    Parameters
    ----------
    ports, width, copies : int
        See :class:`golden.spec.networks.ButterflyUnit`.

    Members
    -------
    i, o, route, start
        See :class:`~rtl.pods.network.Network`.
    """
    kind = "butterfly"
    Parameters = ButterflyUnit

    @property
    def latencies(self):
        """``result``: from an input to an output."""
        return {"result": self.params.label_bits + 2 * self.params.copy_bits}

    def body(self, platform):
        m, unit = Module(), self.params
        labels, joins = range(unit.ports), unit.copy_bits
        round_ = Round(m, self)
        beats = [delay(m, self.i[label], joins, f"beat{label}") for label in labels]
        copies = [self._copy(m, round_, copy, beats) for copy in range(unit.copies)]
        for level in range(joins):
            load, route = round_.reaches(joins + unit.label_bits + level)
            last = level == joins - 1
            copies = [self._join(m, load, route, f"join{level}_{n}", level, pair, last)
                      for n, pair in enumerate(zip(copies[::2], copies[1::2], strict=True))]
        m.d.comb += [self.o[label].eq(copies[0][label]) for label in labels]
        return m

    def _copy(self, m, round_, copy, beats):
        """What comes out of one banyan."""
        unit = self.params
        for place, bit in enumerate(unit.columns):
            stage = unit.copy_bits + place
            load, route = round_.reaches(stage)
            gated = not unit.copy_bits and place == unit.label_bits - 1
            m.submodules[f"copy{copy}_{place}"] = column = Column(unit.ports, unit.width, bit, stage == 0, gated)
            first = (copy * unit.label_bits + place) * unit.ports
            m.d.comb += [column.load.eq(load), column.select.eq(route.switch.as_value()[first:first + unit.ports])]
            m.d.comb += [column.i[label].eq(beat) for label, beat in enumerate(beats)]
            if gated:
                m.d.comb += column.enable.eq(route.enable)
            beats = [column.o[label] for label in range(unit.ports)]
        return beats

    def _join(self, m, load, route, name, level, pair, last):
        """Of two copies, or what is left of more, the one that each output wants."""
        outputs = []
        for label, beats in enumerate(zip(*pair, strict=True)):
            m.submodules[f"{name}_{label}"] = pick = Pick(2, self.params.width, False, last)
            m.d.comb += [pick.i.eq(Cat(*beats)), pick.load.eq(load), pick.select.eq(route.copy[label][level])]
            if last:
                m.d.comb += pick.enable.eq(route.enable[label])
            outputs.append(pick.o)
        return outputs
