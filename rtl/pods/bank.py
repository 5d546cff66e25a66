"""A bank: rows of tiles, read and written a tile a round."""

from dataclasses import dataclass

from amaranth import Module
from amaranth.lib.wiring import In, Out

from ..lib.component import Component
from ..lib.layout import index
from ..lib.memory import Ram
from ..lib.names import parameter
from .tile_walk import TileWalk, command_layout, load_signature, write


class Bank(Component):
    """Gives one tile a round to a network, and takes one from another.

    Parameters
    ----------
    width, depth, rounds : int
        Bits of a row, rows, words of a schedule memory.
    loaded, written, shared : bool
        Whether a host writes rows; whether a network does; whether a second tile a round goes to another network.

    Members
    -------
    load : ``In(load_signature)``
        If it is loaded: not in a cycle in which the network writes.
    read, write : ``In(load_signature)``
        Schedules of tiles that are read, and written.
    rewind, go_read, go_write, rows
        See :class:`~rtl.pods.tile_walk.TileWalk`.
    o, first, valid : ``Out``
        A row, two cycles after its ``go_read`` and on, and whether it is a tile's first; whether there is one.
    i : ``In(width)``
        A row that is written, a cycle after its ``go_write`` and on.
    wrote, address : ``Out``
        Whether and where it is written.
    other, other_o : ``In(load_signature)``, ``Out(width)``
        If it is shared: schedule and rows of the second tile, in the cycles of the first.
    """
    kind, area, apart = "bank", "banks", True

    @dataclass(frozen=True)
    class Parameters:
        width: int = parameter("w")
        depth: int = parameter("d")
        rounds: int = parameter("t")
        loaded: bool = parameter("loaded", False)
        written: bool = parameter("written", False)
        shared: bool = parameter("shared", False)

    @staticmethod
    def ports(params):
        width, depth, word = params.width, params.depth, index(params.depth)
        schedule = load_signature(params.rounds, command_layout(depth).size)
        members = {"rewind": In(1), "go_read": In(1), "rows": In(index(depth + 1)), "read": In(schedule),
                   "o": Out(width), "first": Out(1), "valid": Out(1)}
        if params.loaded:
            members["load"] = In(load_signature(depth, width))
        if params.written:
            members |= {"go_write": In(1), "write": In(schedule), "i": In(width), "wrote": Out(1), "address": Out(word)}
        if params.shared:
            members |= {"other": In(schedule), "other_o": Out(width)}
        return members

    def body(self, platform):
        m, params = Module(), self.params
        m.submodules.rows = memory = Ram(params.depth, params.width)
        memories = [memory]
        m.submodules.reader = reader = self._walk(m, self.read, self.go_read)
        m.d.comb += [memory.r_en.eq(reader.en), memory.r_addr.eq(reader.address), self.o.eq(memory.r_data)]
        m.d.sync += [self.first.eq(reader.first), self.valid.eq(reader.en)]
        if params.shared:    # one read port each
            m.submodules.copy = copy = Ram(params.depth, params.width)
            memories.append(copy)
            m.submodules.other_reader = other = self._walk(m, self.other, self.go_read)
            m.d.comb += [copy.r_en.eq(other.en), copy.r_addr.eq(other.address), self.other_o.eq(copy.r_data)]
        for each in memories:
            if params.loaded:
                write(m, each, self.load)
        if params.written:
            m.submodules.writer = writer = self._walk(m, self.write, self.go_write)
            m.d.comb += [self.wrote.eq(writer.en), self.address.eq(writer.address)]
            with m.If(writer.en):
                for each in memories:
                    m.d.comb += [each.w_en.eq(1), each.w_addr.eq(writer.address), each.w_data.eq(self.i)]
        return m

    def _walk(self, m, load, go):
        """A walk with the schedule that a host loads."""
        walk = TileWalk(self.params.depth, self.params.rounds)
        m.d.comb += [walk.load.en.eq(load.en), walk.load.address.eq(load.address), walk.load.data.eq(load.data),
                     walk.rewind.eq(self.rewind), walk.go.eq(go), walk.rows.eq(self.rows)]
        return walk
