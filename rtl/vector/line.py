"""What goes with a beat of the vector unit from its issue to the result register."""

from typing import NamedTuple

from amaranth import Cat, Mux, Signal, Value
from amaranth.lib.data import View

from hbfp.golden.spec.vector import POSTS

from ..lib.layout import StructLayout, index

#: What later steps need to know of a beat: whether it is the first or the last of its pass, where its result goes, the
#: second half of the first step (``other``: no sum), and the second step.
BEAT = StructLayout({"first": 1, "last": 1, "target": 2, "target_index": 4, "reduce": 2, "reduce_index": 4, "other": 1,
                     "relu": 1, "function": 1, "select": 4})


class Stage(NamedTuple):
    """A place on the way: whether a beat is there, and which."""
    valid: Value
    beat: View


class Line:
    """Registers that beats go through, one stage a cycle; plain logic inside a component.

    A beat without a function that lanes share leaves behind the lanes, one with such a function goes on to the end.

    Parameters
    ----------
    m : Module
    unit : golden.spec.vector.VectorUnit
    current : View
        The word of the pass that issues.
    issue, first, last : Value
        A beat goes, and whether it is a pass's first and last.
    en : Value
        While low all holds.
    short : int
        Cycles from issue to the stage whose beat is stored next, without shared functions.

    Attributes
    ----------
    stages : list of Stage
        By the cycles since the issue, which is the first.
    comes, arrives, stored : Stage
        The beat that will be in the result register in two cycles, in one, and now.
    place : Signal
        Number in its row of the beat that is stored.
    busy : Value
        A beat is on its way.
    """

    def __init__(self, m, unit, current, issue, first, last, en, short):
        self._m, self._en = m, en
        issued = Signal(BEAT)
        m.d.comb += [issued[name].eq(current[name]) for name in ("target", "target_index", "reduce", "reduce_index")]
        m.d.comb += [issued.first.eq(first), issued.last.eq(last), issued.other.eq(current.op.any()),
                     issued.relu.eq(current.post == POSTS.index("relu")),
                     issued.function.eq(current.post > POSTS.index("relu"))]
        with m.Switch(current.post):
            for position, name in enumerate(unit.functions):
                with m.Case(POSTS.index(name)):
                    m.d.comb += issued.select.eq(position)
        self.stages = [Stage(issue, issued)]
        for number in range(1, short + 1 + unit.function_delay):
            valid, beat = self.stages[-1]
            if number == short + 1:
                valid = valid & beat.function
            self.stages.append(self._register(f"beat_{number}", valid, beat))
        if unit.function_delay:
            self.comes, self.arrives = (self._either(name, self.stages[short - back], self.stages[-1 - back])
                                        for name, back in (("comes", 1), ("arrives", 0)))
        else:
            self.comes, self.arrives = self.stages[-2:]
        self.stored = self._register("stored", *self.arrives)
        self.busy = Cat(stage.valid for stage in (*self.stages[1:], self.stored)).any()
        self.place = Signal(index(unit.beats), name="place")
        with m.If(en & self.stored.valid):
            m.d.sync += self.place.eq(Mux(self.stored.beat.last, 0, self.place + 1))

    def _register(self, name, valid, beat):
        """The stage behind a beat; what is there stays until the next one comes."""
        m, there, held = self._m, Signal(name=f"{name}_valid"), Signal(BEAT, name=name, reset_less=True)
        with m.If(self._en):
            m.d.sync += there.eq(valid)
            with m.If(valid):
                m.d.sync += held.eq(beat)
        return Stage(there, held)

    def _either(self, name, near, far):
        """The beat at the end of the lanes, if it has no function, or the one at the end of all."""
        m, beat = self._m, Signal(BEAT, name=name)
        ends = far.valid & far.beat.function
        m.d.comb += beat.eq(Mux(ends, far.beat, near.beat))
        return Stage(ends | near.valid & ~near.beat.function, beat)
