"""Memories of two ports, or in banks of one."""

from amaranth import Module, Mux, Signal

from .memory import Ram
from .pick import pick


class Banked:
    """A memory in banks of one port each, a word in that of its address's lowest bits; plain logic inside a component.

    Its attributes are the members of a :class:`~rtl.lib.memory.Ram` of two ports. Whoever uses it does not write and
    read one bank in a cycle.

    Parameters
    ----------
    m : Module
    name : str
    words, width, granules : int
        As of the ``Ram``.
    banks : int
        A power of two.
    """

    def __init__(self, m: Module, name: str, words: int, width: int, granules: int, banks: int) -> None:
        low = (banks - 1).bit_length()
        self.w_en, self.w_data = Signal(granules, name=f"{name}_w_en"), Signal(width, name=f"{name}_w_data")
        self.r_en, self.r_data = Signal(name=f"{name}_r_en"), Signal(width, name=f"{name}_r_data")
        # A bank of one word has no address, and a wire has at least one bit.
        self.w_addr, self.r_addr = (Signal(range(max(words, 2 * banks)), name=f"{name}_{way}_addr") for way in "wr")
        data = []
        self.banks = []    # of each, whether it is read, and what it gives
        for bank in range(banks):
            ram = m.submodules[f"{name}{bank}"] = Ram(words // banks, width, granules, single=True)
            writes, reads = Signal(name=f"{name}_writes{bank}"), Signal(name=f"{name}_reads{bank}")
            mine = [address[:low] == bank if low else 1 for address in (self.w_addr, self.r_addr)]
            m.d.comb += [writes.eq(self.w_en.any() & mine[0]), reads.eq(self.r_en & mine[1]), ram.en.eq(writes | reads),
                         ram.w_en.eq(Mux(writes, self.w_en, 0)), ram.w_data.eq(self.w_data),
                         ram.addr.eq(Mux(writes, self.w_addr[low:], self.r_addr[low:]))]
            data.append(ram.r_data)
            self.banks.append((reads, ram.r_data))
        if banks == 1:
            m.d.comb += self.r_data.eq(data[0])
            return
        last = Signal(low, name=f"{name}_last")    # the bank that was read
        with m.If(self.r_en):
            m.d.sync += last.eq(self.r_addr[:low])
        m.d.comb += self.r_data.eq(pick(data, last))


def stored(m: Module, name: str, words: int, width: int, granules: int = 1, banks: int = 0) -> Ram | Banked:
    """A memory of two ports, or of so many banks of one; how it is driven is the same."""
    if banks:
        return Banked(m, name, words, width, granules, banks)
    ram = m.submodules[name] = Ram(words, width, granules)
    return ram
