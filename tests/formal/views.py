"""What laws see in ports and registers: fields, numbers, queues, and bits of bursts that are under way."""

from z3 import UGT, ULE, ULT, And, BitVecVal, BoolVal, Concat, Extract, If, Implies, Not, Or, SignExt, ZeroExt, is_bool

#: Bits of small counts.
COUNT = 8


def field(value, layout, name):
    """A field of a port, by its layout: a bit vector, or a Boolean if it has one bit."""
    at = layout[name]
    bits = Extract(at.offset + at.width - 1, at.offset, value)
    return bits == 1 if at.width == 1 else bits


class Fields:
    """The fields of a port or a word, by its layout, as attributes."""

    def __init__(self, value, layout):
        vars(self).update((name, field(value, layout, name)) for name, _ in layout)


def inner(state, name):
    """A register whose name is a port's, too: Amaranth gives it a number; a KeyError if there is none."""
    return vars(state)[next((each for each in vars(state) if each.startswith(f"{name}$")), f"{name}$")]


def part(value, size, place, bits=None):
    """One of the parts of so many bits that a value has, or the lowest bits of it."""
    return Extract(size * place + (bits or size) - 1, size * place, value)


def number(value, bits=COUNT):
    """A bit vector of so many bits, of a narrower one or a Boolean."""
    if is_bool(value):
        return If(value, BitVecVal(1, bits), BitVecVal(0, bits))
    return ZeroExt(bits - value.size(), value) if bits > value.size() else Extract(bits - 1, 0, value)


def chosen(values, place):
    """The one of some values at a place."""
    found = values[0]
    for number_, value in enumerate(values[1:], 1):
        found = If(place == number_, value, found)
    return found


def first(rows, otherwise):
    """The value of the first row, (condition, value), whose condition holds."""
    for condition, value in reversed(rows):
        otherwise = If(condition, value, otherwise)
    return otherwise


def joined(parts):
    """Bit vectors side by side, the first lowest."""
    return Concat(*reversed(parts)) if len(parts) > 1 else parts[0]


def around(place, size):
    """A place of a memory of so many, where those from ``size`` on, less than twice that, begin anew."""
    return If(ULT(place, size), place, place - size)


def high(bits):
    """How many of some bits are high."""
    return sum((number(bit) for bit in bits), BitVecVal(0, COUNT))


class Queue:
    """A :class:`~rtl.lib.fifo.Fifo` in a state: ``length`` words, the oldest of ``words`` first.

    Parameters
    ----------
    state : namespace
        Of a :class:`~tests.formal.prove.Step`.
    name : str
        What its registers' names begin with.
    depth, most : int
        Words of its memory, and those that it may hold; by default as many.

    Attributes
    ----------
    sound : z3.BoolRef
        What always holds of it.
    """

    def __init__(self, state, name, depth, most=None):
        valid, head, behind, first, free = (vars(state)[f"{name}{each}"] for each in (
            "o__valid", "memory.r_data", "behind", "r_addr", "w_addr"))
        self.contents = [vars(state)[f"{name}memory.contents[{place}]"] for place in range(depth)]
        self.first, self.free, self.behind, self.valid = number(first), number(free), number(behind), valid
        self.head, self.depth = head, depth
        later = [chosen(self.contents, around(self.first + each, depth)) for each in range(depth)]
        self.words = [If(valid, one, two) for one, two in zip([head, *later], [*later, head], strict=True)]
        self.length = self.behind + number(valid)
        self.sound = And(ULT(self.first, depth), ULE(self.behind, depth), ULE(self.length, most or depth),
                         self.free == around(self.first + self.behind, depth))

    def becomes(self, then, push, word, pop):
        """Laws by name: nothing is lost, nothing comes twice; the head is offered as soon as it can be."""
        rest = self.length - number(pop)
        waits = [Implies(ULT(BitVecVal(place, COUNT), rest), then.words[place] == (
            If(pop, self.words[place + 1], one) if place + 1 < len(self.words) else one))
            for place, one in enumerate(self.words)]
        return {
            "count": then.length == rest + number(push), "what waits": And(*waits),
            "what comes": Implies(push, chosen(then.words, rest) == word),
            "head": then.valid == Or(And(self.valid, Not(pop)), self.behind != 0),
        }

    def turns(self, then, push, pop):
        """Laws by name, which say the same where a word's way through a long memory is too much for a solver."""
        reads = And(self.behind != 0, Or(pop, Not(self.valid)))
        return {
            "places": And(then.first == around(self.first + number(reads), self.depth),
                          then.free == around(self.free + number(push), self.depth)),
            "count": then.behind == self.behind + number(push) - number(reads),
            "head": And(then.valid == Or(reads, And(self.valid, Not(pop))),
                        then.head == If(reads, chosen(self.contents, self.first), self.head)),
        }


class Loops:
    """Nested :class:`~rtl.accelerator.loops.Loops` in a state, the innermost first.

    Parameters
    ----------
    now : namespace
        Of a :class:`~tests.formal.prove.Step`.
    counts : list of z3.BitVecRef
        Turns of each.

    Attributes
    ----------
    ends : list of z3.BoolRef
        Whether each is in its last turn.
    last : z3.BoolRef
        Whether all are.
    """

    def __init__(self, now, counts):
        self.counters = [vars(now)[f"loop_count{n}"] for n, _ in enumerate(counts)]
        self.ends = [number(counter, counter.size() + 1) + 1 == number(count, counter.size() + 1)
                     for counter, count in zip(self.counters, counts, strict=True)]
        self.last, self._now = And(*self.ends), now

    def turns(self, then, start, step):
        """Laws by name: a loop goes on, or begins anew, when all inside it are in their last turn."""
        return {f"loop {n}": vars(then)[f"loop_count{n}"] == If(start, 0, If(
            And(step, *self.ends[:n]), If(self.ends[n], 0, counter + 1), counter))
            for n, counter in enumerate(self.counters)}

    def follows(self, then, name, begin, strides, start, step):
        """A law: a number is ``begin`` at the start and grows by ``strides[n]``, as wide, when loop n goes on.

        A stride is None where the number is again what it was when the loop began. Registers of the number when a
        round of loop n began are ``name`` with n, or with that of the loop outside it which begins it alike.
        """
        places = [n for n, stride in enumerate(strides) if stride is not None or n + 1 == len(strides)]
        now, after = ({n: vars(state)[f"{name}{n}"] for n in places} for state in (self._now, then))
        grown = [(And(*self.ends[:n], Not(self.ends[n])), now[min(place for place in places if place >= n)] + (
            0 if stride is None else stride)) for n, stride in enumerate(strides)]
        return And(*(after[place] == If(start, begin, If(step, first(grown[place:], value), value))
                     for place, value in now.items()))


def signed(value, bits):
    """A signed number of so many bits."""
    return SignExt(bits - value.size(), value)


def always_of_pieces(pieces, legal, beats, done):
    """What always holds, by name, of pieces that wait behind a walk.

    Each is ``legal``, and of the head's ``beats`` so many are done, but not all.
    """
    waiting = enumerate(pieces.words[:pieces.depth])
    return {"pieces": pieces.sound,
            "pieces are legal": And(*(Implies(ULT(BitVecVal(n, COUNT), pieces.length), legal(word))
                                      for n, word in waiting)),
            "beats of a burst": If(pieces.valid, ULT(done, number(beats)), done == 0)}


def marks(value, count, then, push, mark, pop):
    """A law: of bursts under way, the oldest lowest, each keeps its bit; one that comes has ``mark``."""
    size, rest = value.size(), count - number(pop)
    bits, later = ([Extract(place, place, each) == 1 for place in range(size)] + [BoolVal(False)]
                   for each in (value, then))
    return And(*(later[place] == If(ULT(BitVecVal(place, COUNT), rest), If(pop, bits[place + 1], bits[place]),
                                    And(push, mark, rest == place)) for place in range(size)))


def unmarked(value, count):
    """What always holds of such bits: there are none of bursts that are not under way."""
    return And(*(Or(UGT(count, place), Extract(place, place, value) == 0) for place in range(value.size())))
