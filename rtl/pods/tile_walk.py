"""A schedule memory, and the addresses of a tile's rows that follow from its word."""

from dataclasses import dataclass

from amaranth import Module, Mux, Signal
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out, Signature

from ..lib.component import Component
from ..lib.layout import StructLayout, index
from ..lib.memory import Ram
from ..lib.names import parameter


def load_signature(depth, width):
    """A host's write into a memory: word ``address`` becomes ``data`` while ``en`` is high."""
    return Signature({"en": Out(1), "address": Out(index(depth)), "data": Out(width)})


def write(m, ram, load):
    """Wire a host's writes to a memory."""
    m.d.comb += [ram.w_en.eq(load.en), ram.w_addr.eq(load.address), ram.w_data.eq(load.data)]


def command_layout(depth, more=0):
    """A command: whether a tile is read or written in the round, where it begins, and ``more`` bits for the user."""
    return StructLayout({"enable": 1, "address": index(depth)} | ({"more": more} if more else {}))


class Station(Component):
    """A schedule memory that gives one word a round.

    Parameters
    ----------
    rounds, width : int
        Words, and bits of a word.

    Members
    -------
    load : ``In(load_signature)``
    rewind : ``In(1)``
        The next round is the first.
    go : ``In(1)``
        A round begins: a cycle later ``start`` is high and ``word`` is its word, which stays until the next one.
    start, word : ``Out``
    """
    kind, area, apart = "station", "control", True

    @dataclass(frozen=True)
    class Parameters:
        rounds: int = parameter("t")
        width: int = parameter("w")

    @staticmethod
    def ports(params):
        return {"load": In(load_signature(params.rounds, params.width)), "rewind": In(1), "go": In(1),
                "start": Out(1), "word": Out(params.width)}

    def body(self, platform):
        m = Module()
        m.submodules.words = words = Ram(self.params.rounds, self.params.width)
        place = Signal(index(self.params.rounds))
        write(m, words, self.load)
        m.d.comb += [words.r_en.eq(self.go), words.r_addr.eq(place), self.word.eq(words.r_data)]
        m.d.sync += [self.start.eq(self.go), place.eq(Mux(self.rewind, 0, place + self.go))]
        return m


class TileWalk(Component):
    """Walks the rows of a tile in every round in which its command says so, one a cycle.

    Parameters
    ----------
    depth, rounds, more : int
        Rows of the bank; words of the schedule memory, and bits of a word that the user has.

    Members
    -------
    load, rewind, go
        See :class:`Station`; its words are of :func:`command_layout`.
    rows : ``In``
        Rows of a tile; they must be fewer than a round has cycles.
    en, address, first : ``Out``
        A row is walked over, from the cycle after ``go`` on; which; whether it is the tile's first.
    start, more : ``Out``
        See :class:`Station`.
    """
    kind, area, apart = "tile_walk", "control", True

    @dataclass(frozen=True)
    class Parameters:
        depth: int = parameter("d")
        rounds: int = parameter("t")
        more: int = parameter("m", 0)

        @property
        def command(self):
            """Layout of a command."""
            return command_layout(self.depth, self.more)

    @staticmethod
    def ports(params):
        members = {"load": In(load_signature(params.rounds, params.command.size)), "rewind": In(1), "go": In(1),
                   "rows": In(index(params.depth + 1)), "en": Out(1), "address": Out(index(params.depth)),
                   "first": Out(1), "start": Out(1)}
        return members | ({"more": Out(params.more)} if params.more else {})

    def body(self, platform):
        m, params = Module(), self.params
        m.submodules.station = station = Station(params.rounds, params.command.size)
        command = View(params.command, station.word)
        left = Signal(index(params.depth + 1))
        following = Signal(index(params.depth), reset_less=True)
        m.d.comb += [
            station.load.en.eq(self.load.en), station.load.address.eq(self.load.address),
            station.load.data.eq(self.load.data), station.rewind.eq(self.rewind), station.go.eq(self.go),
            self.start.eq(station.start), self.first.eq(station.start & command.enable),
            self.en.eq(self.first | left.any()), self.address.eq(Mux(station.start, command.address, following)),
        ]
        if params.more:
            m.d.comb += self.more.eq(command.more)
        with m.If(self.first):
            m.d.sync += left.eq(self.rows - 1)
        with m.Elif(left.any()):
            m.d.sync += left.eq(left - 1)
        with m.If(self.en):
            m.d.sync += following.eq(self.address + 1)
        return m
