"""Passes of the vector unit that take several rows of one beat: how many, and scalars with a number for each row."""

from amaranth import Array, Const, Mux, Signal

from hbfp.golden.spec.vector import LENGTH_BITS, SCALARS, Kind, Target

from ..lib.layout import index
from ..lib.memory import Ram


class Several:
    """What a unit keeps of several rows; plain logic inside a component, and nothing in a unit without them.

    A scalar that a pass over several rows puts has a number for each in memories, one for each operand; a bit says so,
    until the scalar is set, or put by a pass over one row. Pass and scalar wait for each other as for one row, by the
    last of the numbers: the first ones are there before then.

    Parameters
    ----------
    m : Module
    unit : golden.spec.vector.VectorUnit
    word : View
        The word that is offered.
    en : Value
        While low all holds.

    Attributes
    ----------
    there, alone : Value
        A pass takes several rows, or one.
    """

    def __init__(self, m, unit, word, en):
        self._m, self._most, self._word, self._en = m, unit.short_rows, word, en
        if not self._most:
            self.there, self.alone = Const(0, 1), 1
            return
        self._rows = Signal(range(self._most + 1), name="rows")
        self.there, self.alone = self._rows.any(), ~self._rows.any()
        self._kept = [Signal(name=f"scalar_{number}_several") for number in range(SCALARS)]
        self._reads = {name: Signal(name=f"{name}_several") for name in "abc"}
        self._put, self._index, self._value = Signal(name="put_several"), Signal(4), Signal(32)
        self._place = Signal(index(self._most))

    def either(self, value):
        """A condition, or that there are several rows."""
        return value | self.there if self._most else value

    def last_beat(self, beat):
        """The number of a pass's last beat; ``beat`` for one row."""
        return Mux(self.there, self._rows - 1, beat) if self._most else beat

    def told(self, payload):
        """The word is LENGTH, and taken."""
        if self._most:
            self._m.d.sync += self._rows.eq(payload[LENGTH_BITS:])

    def set(self, number):
        """A scalar is set to one number."""
        if self._most:
            for each, kept in enumerate(self._kept):
                with self._m.If(number == each):
                    self._m.d.sync += kept.eq(0)

    def begins(self):
        """The word is taken, and is a pass."""
        if not self._most:
            return
        word = self._word
        reduces, kept = word.reduce.any(), Array(self._kept)
        number = Mux(reduces, word.reduce_index, word.target_index)
        self._m.d.sync += [reads.eq(kept[word[name]]) for name, reads in self._reads.items()]
        with self._m.If(reduces | (word.kind == Kind.SCALAR) & (word.target == Target.SCALAR)):
            self._m.d.sync += kept[number].eq(self.there)

    def put(self, number, place, value):
        """A scalar of a row is put, where there are several."""
        if not self._most:
            return
        self._m.d.comb += [self._put.eq(self.there), self._index.eq(number), self._place.eq(place),
                           self._value.eq(value)]

    def scalar(self, name, current, beat, value):
        """A scalar as operand ``name``, a cycle after the issue of a beat; ``value`` if it has one number."""
        if not self._most:
            return value
        m = self._m
        m.submodules[f"several_{name}"] = ram = Ram(SCALARS * self._most, 32)
        several = Signal(name=f"operand_{name}_several")
        with m.If(self._en):
            m.d.sync += several.eq(self._reads[name])
        m.d.comb += [ram.w_en.eq(self._put), ram.w_addr.eq(self._index * self._most + self._place),
                     ram.w_data.eq(self._value), ram.r_en.eq(self._en),
                     ram.r_addr.eq(current[name] * self._most + beat)]
        return Mux(several, ram.r_data, value)
