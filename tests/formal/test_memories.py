# amaranth: UnusedElaboratable=no
"""Memories of one port in one cycle, for all inputs: who is granted, what is read and written, and what parity tells.

What :mod:`rtl.accelerator.memories` promises: of several that ask the first has the port, a bank is read or written,
an address beyond the memory is a fault and does nothing, a word stays until the next is read, and a reader is told when
the word that it read last is not as it was written. Rams are hollow, and have laws of their own.
"""

from dataclasses import replace
from functools import reduce
from operator import or_

import pytest
from z3 import UGE, And, BitVecVal, BoolVal, Extract, If, Implies, Not, Or, Xor, is_bool

from rtl.accelerator.memories import PMemory, VMemory, WMemory, XMemory
from rtl.lib.memory import Ram
from tests.cases import sweep
from tests.cosim.accelerator.built import ACCELERATOR
from tests.formal.prove import Laws, Step
from tests.formal.views import chosen, first, inner, joined, number, part

#: Kinds of the parts that are hollow where changes are judged.
HOLLOW = ("ram",)


def bits(value, low, count):
    """So many bits of a value from one on."""
    return Extract(low + count - 1, low, value)


class _Port:
    """A port of a memory, in a state: what it asks for, and what it is told."""

    def __init__(self, state, name):
        self.name = name
        self.en, self.addr, self.grant, self.fault = (vars(state)[f"{name}__{each}"] for each in (
            "en", "addr", "grant", "fault"))
        self.data, self.mask = (vars(state).get(f"{name}__{each}") for each in ("data", "mask"))


class _Ports:
    """Ports of which the first that asks has the memory.

    Parameters
    ----------
    words : int
        A power of two, from which on an address is a fault.
    waits : dict
        Name of a port -> whether it waits, of those that may.

    Attributes
    ----------
    there : z3.BoolRef
        A word is read, or written.
    addr, data, mask : z3.BitVecRef
        Of the one that has it; ``chosen`` is a bit for each.
    """

    def __init__(self, state, names, words, waits):
        self.ports, self._waits = [_Port(state, name) for name in names], waits
        before = [Or(False, *(port.en for port in self.ports[:n])) for n, _ in enumerate(self.ports)]
        self.mine = [And(port.en, Not(earlier)) for port, earlier in zip(self.ports, before, strict=True)]
        wait = [waits.get(port.name, BoolVal(False)) for port in self.ports]
        beyond = [UGE(port.addr, words) for port in self.ports]
        self.there = Or(*(And(own, Not(late), Not(far)) for own, late, far in zip(
            self.mine, wait, beyond, strict=True)))
        self.readers = [And(port.en, port.grant) for port in self.ports]
        self.laws = {f"{port.name}: granted": And(
            port.grant == And(Not(earlier), Not(late)), port.fault == And(own, far)) for port, own, earlier, late, far
                     in zip(self.ports, self.mine, before, wait, beyond, strict=True)}
        self.addr, self.data, self.mask = (self._of(name) for name in ("addr", "data", "mask"))

    def _of(self, name):
        values = [getattr(port, name) for port in self.ports]
        if values[0] is not None:
            return first(list(zip(self.mine[:-1], values[:-1], strict=True)), values[-1])


class _Stored:
    """A memory in banks of one port, which holds words of some granules.

    Parameters
    ----------
    params : Parameters
        Of the part that has it, for parity.
    name : str
    words, granules, banks : int
    read, write : (z3.BoolRef, z3.BitVecRef)
        Whether a word is, and its address.
    mask, data : z3.BitVecRef
        Granules that are written, and the word.
    readers : list of z3.BoolRef
        Whose read it is.
    """

    def __init__(self, step, params, name, words, granules, banks, read, write, mask, data, readers):
        now, then = step.now, step.then
        size, low, depth = data.size() // granules, (banks - 1).bit_length(), (words - 1).bit_length()
        guard = int(params.parity)
        clears = now.clears if guard else BoolVal(False)
        enables = If(clears, -1, If(write[0], mask, 0))
        to = If(clears, bits(now.place, 0, depth), bits(write[1], 0, depth)) if guard else bits(write[1], 0, depth)
        at, self.laws, found, wrong = bits(read[1], 0, depth), {}, [], []
        for bank in range(banks):
            ram = {each: vars(now)[f"{name}{bank}.{each}"] for each in ("en", "w_en", "addr", "w_data", "r_data")}
            writes, reads = (And(there, bits(place, 0, low) == bank) if low else there
                             for there, place in ((enables != 0, to), (read[0], at)))
            mine = number(ram["w_en"], granules)
            self.laws |= {
                f"{name}{bank}: used": And(ram["en"] == Or(writes, reads), mine == If(writes, enables, 0)),
                f"{name}{bank}: place": Implies(ram["en"], ram["addr"] == bits(If(writes, to, at), low, depth - low)),
                f"{name}{bank}: word": And(*(Implies(part(mine, 1, n) == 1, self._written(
                    part(ram["w_data"], size + guard, n), If(clears, 0, part(data, size, n)), guard))
                    for n in range(granules))),
            }
            parts = [part(ram["r_data"], size + guard, n) for n in range(granules)]
            found.append(joined([bits(each, 0, size) for each in parts]))
            if guard:
                bad = Or(*(Not(self._odd(each)) for each in parts))
                mine, later = (vars(state)[f"{name}_reader{bank}"] for state in (now, then))
                wrong.append(If(bad, number(mine, len(readers)), 0))
                self.laws[f"{name}{bank}: who read last"] = number(later, len(readers)) == If(
                    reads, joined([number(each, 1) for each in readers]), number(mine, len(readers)))
        self.word, self.broken = found[0], reduce(or_, wrong) if guard else None
        if low:
            last, later = (number(vars(state)[f"{name}_last"], low) for state in (now, then))
            self.word = chosen(found, last)
            self.laws[f"{name}: bank"] = later == If(read[0], bits(at, 0, low), last)

    @staticmethod
    def _odd(value):
        """An odd number of ones, bit by bit in the order in which Yosys adds them up: in another it takes minutes."""
        return reduce(Xor, (part(value, 1, n) == 1 for n in range(value.size())))

    @classmethod
    def _written(cls, stored, value, guard):
        """A granule that is stored is a value, with parity."""
        return And(bits(stored, 0, value.size()) == value, cls._odd(stored)) if guard else stored == value


def _told(step, memories, readers=1):
    """The law of parity: who has read what is not as it was written, of any of the memories."""
    if memories[0].broken is None:
        return {}
    return {"broken": number(step.then.broken, readers) == reduce(or_, (each.broken for each in memories))}


def laws_of_v(params, step):
    """Laws of V: four that read, and three that write with a mask of lanes."""
    now, banks = step.now, params.memory_banks
    low = (banks - 1).bit_length()
    writes = _Ports(now, [f"write_{name}" for name in VMemory.WRITERS], params.v_words, {})

    def clashes(name):
        place = vars(now)[f"{name}__addr"]
        return And(writes.there, bits(place, 0, low) == bits(writes.addr, 0, low)) if low else writes.there
    names = [f"read_{name}" for name in VMemory.READERS]
    reads = _Ports(now, names, params.v_words, {name: clashes(name) for name in names})
    memory = _Stored(step, params, "ram", params.v_words, params.lanes, banks, (reads.there, reads.addr),
                     (writes.there, writes.addr), writes.mask, writes.data, reads.readers)
    return writes.laws | reads.laws | memory.laws | _told(step, [memory], len(names)) | {
        "what is read": And(*(port.data == memory.word for port in reads.ports))}


def laws_of_x(params, step):
    """Laws of X, whose words are rows of the core."""
    now, banks = step.now, params.memory_banks
    low = (banks - 1).bit_length()
    writes = _Ports(now, ["write"], params.x_words, {})
    same = bits(now.read__addr, 0, low) == bits(writes.addr, 0, low) if low else BoolVal(True)
    reads = _Ports(now, ["read"], params.x_words, {"read": And(writes.there, same)})
    memory = _Stored(step, params, "ram", params.x_words, 1, banks, (reads.there, reads.addr),
                     (writes.there, writes.addr), BitVecVal(1, 1), writes.data, [BoolVal(True)])
    return writes.laws | reads.laws | memory.laws | _told(step, [memory]) | {
        "what is read": reads.ports[0].data == memory.word}


def laws_of_w(params, step):
    """Laws of W: rows, several in a word, and exponents of segments; a load waits for what is read, a read for convert.
    """
    now, rows, packed, height = step.now, params.w_words, params.packed, params.height
    low, segment = (packed - 1).bit_length(), (height - 1).bit_length()
    begins = {"write": bits(now.read__addr, 0, low) == 0, "scales": bits(now.read__addr, 0, segment) == 0}
    reads = _Ports(now, ["read"], rows, {"read": Or(*(And(vars(now)[f"{name}_convert__en"], begin)
                                                      for name, begin in begins.items()))})
    found, memories, step_of = reads.laws, [], {"write": packed, "scales": height}
    for name, memory in (("write", "ram"), ("scales", "scales")):
        skip, granules = (step_of[name] - 1).bit_length(), packed if name == "write" else 1
        writes = _Ports(now, [f"{name}_convert", f"{name}_load"], rows, {
            f"{name}_load": And(now.read__en, begins[name])})

        def word(addr, skip=skip):
            return bits(addr, skip, addr.size() - skip)
        read = And(reads.there, begins[name]), word(reads.addr)
        memories.append(_Stored(step, params, memory, rows // step_of[name], granules, 1, read,
                                (writes.there, word(writes.addr)), BitVecVal(1, 1) if writes.mask is None
                                else writes.mask, writes.data, [BoolVal(True)]))
        found |= writes.laws | memories[-1].laws
    place, later = (inner(state, "place") if params.parity else state.place for state in (now, step.then))
    size = memories[0].word.size() // packed
    return found | _told(step, memories) | {
        "a row of the word": later == If(reads.there, bits(reads.addr, 0, low), place),
        "what is read": And(now.read__data == chosen([part(memories[0].word, size, n) for n in range(packed)], place),
                            now.read__scales == memories[1].word)}


def laws_of_p(params, step):
    """Laws of P: a beat is written in as many cycles as it has instructions, in which none is read."""
    now, then, each = step.now, step.then, params.lanes // 2
    turn, later = (vars(state)[next((name for name in vars(state) if name.endswith("$signal")), "turn")]
                   for state in (now, then))
    writes = _Ports(now, ["write"], params.p_words // each, {"write": turn != each - 1})
    reads = _Ports(now, ["read"], params.p_words, {"read": now.write__en})
    instructions = [part(now.write__data, now.write__data.size() // each, n) for n in range(each)]
    memory = _Stored(step, params, "ram", params.p_words, 1, 1, (reads.there, reads.addr),
                     (And(now.write__en, Not(now.write__fault)), joined([turn, now.write__addr])), BitVecVal(1, 1),
                     chosen(instructions, turn), [BoolVal(True)])
    return writes.laws | reads.laws | memory.laws | _told(step, [memory]) | {
        "a beat's instructions follow each other": later == If(now.write__en, turn + 1, turn),
        "what is read": now.read__data == memory.word}


def laws_of_ram(step):
    """Laws of a memory of one port."""
    now, then = step.now, step.then
    depth = sum(name.startswith("contents[") for name in vars(now))
    before, after = ([vars(state)[f"contents[{n}]"] for n in range(depth)] for state in (now, then))
    granules = 1 if is_bool(now.w_en) else now.w_en.size()
    enables = number(now.w_en, granules)
    size, place = now.w_data.size() // granules, number(now.addr)
    reads = And(now.en, enables == 0)
    return {
        "read": And(*(Implies(And(reads, place == n), then.r_data == before[n]) for n in range(depth)),
                    Implies(Not(reads), then.r_data == now.r_data)),
        "written": And(*(part(after[n], size, each) == If(
            And(now.en, place == n, part(enables, 1, each) == 1), part(now.w_data, size, each),
            part(before[n], size, each)) for n in range(depth) for each in range(granules))),
    }


KINDS = {"v": (VMemory, laws_of_v), "x": (XMemory, laws_of_x), "w": (WMemory, laws_of_w), "p": (PMemory, laws_of_p)}


def laws(system, step):
    """Laws of the memory of an accelerator that a step is of, or of a ram; each by its ports."""
    now = vars(step.now)
    if "r_data" in now and "contents[0]" in now and "w_data" in now and step.is_input("w_data"):
        return Laws(laws_of_ram(step), kept=("r_data", *(name for name in now if name.startswith("contents["))))
    name = "v" if "read_drain__en" in now else "w" if "scales_load__en" in now else "p" if now[
        "read__data"].size() == 64 and now["write__data"].size() == 256 else "x"
    kind, own = KINDS[name]
    return Laws(own(kind.of(system).params, step))


@pytest.mark.parametrize("name, parity", sweep(2, [(name, parity) for name in KINDS for parity in (True, False)]))
def test_laws(name, parity):
    system = replace(ACCELERATOR, parity=parity)
    step = Step.of(KINDS[name][0].of(system), [Ram])
    assert step.broken(laws(system, step)) == []


@pytest.mark.parametrize("depth, width, granules", sweep(2, [(4, 8, 1), (8, 12, 4), (16, 89, 1)]))
def test_laws_of_a_ram(depth, width, granules):
    step = Step.of(Ram(depth, width, granules, single=True))
    assert step.broken(laws(None, step)) == []
