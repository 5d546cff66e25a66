"""Fewer side lanes than columns: a row passes in turns."""

from dataclasses import dataclass
from itertools import pairwise

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..lib.component import Component
from ..lib.memory import Ram
from ..lib.names import parameter
from ..lib.skew import delay
from .sequencer import steps_layout
from .side import SideLane


def _choose(m, name, word, width, which):
    """Part number ``which``, of ``width`` bits, of a word."""
    part = Signal(width, name=name)
    count = len(word) // width
    with m.Switch(which):
        for number in range(count):
            # A value that never comes counts as the last part: a list of cases with gaps is a warning elsewhere.
            with m.Default() if number == count - 1 and count & number else m.Case(number):
                m.d.comb += part.eq(word[number * width:(number + 1) * width])
    return part


class SideTurns(Component):
    """Lanes that serve the columns of a row in turns: those of one turn are ``lanes`` neighbours, the first ones first.

    A row's results are there together, with its last turn, :attr:`LATENCY` cycles after that. Factors and biases lie in
    memories, a word for each turn. All registers are held while ``en`` is low.

    Parameters
    ----------
    cols, lanes : int
        Columns, and lanes, a divisor of them and fewer.
    multiplier, integer
        Of a lane, see :class:`~rtl.core.side.SideLane`.

    Members
    -------
    en : ``In(1)``
    steps : ``In(steps_layout)``
        Steps of the rows that are inside.
    load, factor, v, loaded : ``In(1)``, ``In(1)``, ``In``, ``Out(1)``
        Take a beat of factors or else of biases, while no row is inside: as many cycles as turns, in the last of which
        ``loaded`` is high.
    valid, i : ``In(1)``, ``In``
        A row; it must stay until ``taken``.
    taken : ``Out(1)``
        This is its last turn, or there is no row.
    done, o : ``Out(1)``, ``Out``
        A row of results.
    """
    kind, area, apart = "side_turns", "side unit", True
    #: Cycles from a turn to its results.
    LATENCY = SideLane.LATENCY

    @dataclass(frozen=True)
    class Parameters:
        cols: int = parameter("c")
        lanes: int = parameter("l")
        multiplier: str = parameter("", "plain", rare=True)
        integer: bool = parameter("integer", False, rare=True)

        @property
        def turns(self):
            """Cycles that a row takes."""
            return self.cols // self.lanes

    @staticmethod
    def ports(params):
        row = 32 * params.cols
        return {"en": In(1), "steps": In(steps_layout()), "load": In(1), "factor": In(1), "v": In(row),
                "loaded": Out(1), "valid": In(1), "i": In(row), "taken": Out(1), "done": Out(1), "o": Out(row)}

    @property
    def latencies(self):
        """``result``: from a row's last turn to ``o``; ``row``: cycles that a row takes."""
        return {"result": self.LATENCY, "row": self.params.turns}

    def body(self, platform):
        m, params = Module(), self.params
        last, width = params.turns - 1, 32 * params.lanes
        place = Signal(range(params.turns))
        turn = [Signal(range(params.turns), name=f"turn_{stage}", reset_less=stage > 0)
                for stage in range(1 + self.LATENCY)]
        valid = [self.valid, *(Signal(name=f"valid_{stage}") for stage in range(1, len(turn)))]
        m.d.comb += [self.taken.eq(~self.valid | (turn[0] == last)), self.loaded.eq(self.load & (place == last))]
        with m.If(self.load):
            m.d.sync += place.eq(Mux(self.loaded, 0, place + 1))
        with m.If(self.en):
            m.d.sync += [after.eq(before) for flags in (valid, turn[1:]) for before, after in pairwise(flags)]
            m.d.sync += turn[1].eq(turn[0])
            with m.If(self.valid):
                m.d.sync += turn[0].eq(Mux(self.taken, 0, turn[0] + 1))

        operands, vector = [], _choose(m, "vector", self.v, width, place)
        for name, stage, wanted in (("factors", 0, self.factor), ("biases", 1, ~self.factor)):
            m.submodules[name] = ram = Ram(params.turns, width)
            m.d.comb += [ram.w_en.eq(self.load & wanted), ram.w_addr.eq(place), ram.w_data.eq(vector),
                         ram.r_en.eq(self.en), ram.r_addr.eq(turn[stage])]
            operands.append(ram.r_data)

        part, results = _choose(m, "part", self.i, width, turn[0]), []
        for number in range(params.lanes):
            m.submodules[f"lane{number}"] = lane = SideLane(shared=True, multiplier=params.multiplier,
                                                                integer=params.integer)
            mine = slice(32 * number, 32 * number + 32)
            m.d.comb += [lane.en.eq(self.en), lane.steps.eq(self.steps), lane.i.eq(part[mine]),
                         lane.scale.eq(operands[0][mine]), lane.bias.eq(operands[1][mine])]
            results.append(lane.o)
        gathered = Signal(width * last, reset_less=True)    # results of the turns before, the first ones lowest
        with m.If(self.en & valid[-1]):
            m.d.sync += gathered.eq(Cat(gathered, *results)[width:])
        m.d.comb += [self.done.eq(valid[-1] & (turn[-1] == last)), self.o.eq(Cat(gathered, *results))]
        return m


class FreeTurns(Component):
    """The same without stalls: the results of a turn leave :attr:`~rtl.core.side.SideLane.Parameters.latency` cycles
    after it, and whoever takes them gathers the row.

    Parameters
    ----------
    cols, lanes : int
        See :class:`SideTurns`.
    lane : rtl.core.side.SideLane.Parameters

    Members
    -------
    steps, v, loaded
        See :class:`SideTurns`.
    load : ``In(2)``
        A beat of factors, of biases is there; ``loaded`` takes it, one cycle more than turns later.
    valid, i : ``In(1)``, ``In``
        A row begins its turns; it stays as many cycles.
    w_en, o : ``Out(turns)``, ``Out``
        The turn whose results are there, and they.
    """
    kind, area, apart = "free_turns", "side unit", True

    @dataclass(frozen=True)
    class Parameters:
        cols: int = parameter("c")
        lanes: int = parameter("l")
        lane: SideLane.Parameters = parameter("")

        @property
        def turns(self):
            """Cycles that a row takes."""
            return self.cols // self.lanes

    @staticmethod
    def ports(params):
        row = 32 * params.cols
        return {"steps": In(steps_layout()), "load": In(2), "v": In(row), "loaded": Out(1), "valid": In(1),
                "i": In(row), "w_en": Out(params.turns), "o": Out(32 * params.lanes)}

    @property
    def latencies(self):
        """``result``: from a turn to ``o``; ``row``: cycles that a row takes."""
        return {"result": self.params.lane.latency, "row": self.params.turns}

    def body(self, platform):
        m, params = Module(), self.params
        width = 32 * params.lanes
        turns = [self.valid]    # one bit each: whose turn it is
        for number in range(1, params.turns):
            turns.append(delay(m, turns[-1], 1, f"turn{number}", reset_less=False))
        place = Signal(params.turns)
        m.d.comb += place.eq(Cat(turns))

        load = Signal(2)
        writes = Signal(range(params.turns))
        m.d.sync += load.eq(self.load & ~self.loaded.replicate(2))
        m.d.comb += self.loaded.eq(load.any() & (writes == params.turns - 1))
        with m.If(load.any()):
            m.d.sync += writes.eq(Mux(self.loaded, 0, writes + 1))
        asked = Signal(range(params.turns))
        operands = []
        m.d.comb += [asked[bit].eq(Cat(turns[n] for n in range(params.turns) if n >> bit & 1).any())
                     for bit in range(len(asked))]
        vector = _choose(m, "vector", self.v, width, writes)
        for name, which, late in (("factors", 0, 0), ("biases", 1, 1 + params.lane.multiply)):
            m.submodules[name] = ram = Ram(params.turns, width)
            m.d.comb += [ram.w_en.eq(load[which]), ram.w_addr.eq(writes), ram.w_data.eq(vector), ram.r_en.eq(1),
                         ram.r_addr.eq(delay(m, asked, late, name))]
            operands.append(ram.r_data)

        part = 0
        for number, mine in enumerate(turns):
            part = part | self.i[number * width:(number + 1) * width] & mine.replicate(width)
        chosen = Signal(width, name="part")
        m.d.comb += chosen.eq(part)
        for number in range(params.lanes):
            m.submodules[f"lane{number}"] = lane = SideLane.made(params.lane)
            mine = slice(32 * number, 32 * number + 32)
            m.d.comb += [Cat(lane.steps).eq(Cat(self.steps)), lane.i.eq(chosen[mine]),
                         lane.scale.eq(operands[0][mine]), lane.bias.eq(operands[1][mine]), self.o[mine].eq(lane.o)]
        m.d.comb += self.w_en.eq(delay(m, place, params.lane.latency, "leaves", reset_less=False))
        return m
