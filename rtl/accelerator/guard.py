"""Parity of the memories V, X, W and P, and how they are cleared behind a reset."""

from functools import reduce
from operator import or_

from amaranth import Const
from amaranth.lib.wiring import In, Out

from ..lib.banked import stored
from ..lib.parity import Guarded
from .layouts import ADDRESS_BITS


def guard_members(params, readers=1):
    """Ports of a memory with parity; none without.

    ``clears``, ``place``: while it is high zeros are written to word ``place``, modulo the words that there are.
    ``broken`` has a bit for each of those that read: what it has read last is not what was written.
    """
    return {"clears": In(1), "place": In(ADDRESS_BITS), "broken": Out(readers)} if params.parity else {}


class Memories:
    """Makes the memories of a part, as :func:`~rtl.lib.banked.stored` does, or, if it has the option, with parity.

    Parameters
    ----------
    m : Module
    part : Component
        It has :func:`guard_members`.
    """

    def __init__(self, m, part):
        self.m, self.part, self.guarded = m, part, []

    def __call__(self, name, words, width, granules=1, banks=0, readers=None):
        """A memory; ``readers``, a bit for each, as of :class:`~rtl.lib.parity.Guarded`: if not given, there is one."""
        if not self.part.params.parity:
            return stored(self.m, name, words, width, granules, banks)
        made = Guarded(self.m, name, words, width, granules, banks, clears=self.part.clears, place=self.part.place,
                       readers=Const(1, 1) if readers is None else readers)
        self.guarded.append(made.broken)
        return made

    def watch(self):
        """Drive ``broken``, when all memories are made."""
        if self.guarded:
            self.m.d.comb += self.part.broken.eq(reduce(or_, self.guarded))
