"""What a pass of the vector unit waits for before it may follow the one before it."""

from amaranth import Array, Cat, Mux, Signal

from hbfp.golden.spec.vector import POSTS, SCALARS, Kind, Source, Target


def has_function(word):
    """Whether the second step is a function."""
    return word.post > POSTS.index("relu")


class Waits:
    """Whether a word that is a pass may be taken, so that its first beat is issued from the next cycle on.

    Plain logic inside a component. All counts are of cycles in which the unit is not held. Nothing here depends on the
    streams, so that a pass that is taken finds all that it reads, however late its beats are.

    - *Registers.* Beat k of a row may be read from the cycle after it was written on. A pass of n beats has issued one
      in a cycle at most, and so does the one that reads: it may be taken once n and the cycles since the last beat are
      more than the cycles from a beat to its result.
    - *Scalars.* One that is to be written has a bit, until the pass that reads it would see the new value.
    - *Totals.* A pass that reduces begins them anew with its first result: not before those of the one before are put
      into their scalar. Operations on scalars wait alike, so that no two results want to write a scalar at a time.

    Parameters
    ----------
    m : Module
    unit : golden.spec.vector.VectorUnit
    result, extra : int
        Cycles from a beat to its result, and more with a function that lanes share.
    word, current : View
        The word that is offered, and the pass that issues.
    running, issue, last, en : Value
        A pass issues; a beat goes; its pass has no further one; nothing is held.
    begins : Value
        The word is taken, and is a pass.
    written : list of tuples of Value
        A scalar will be written in two cycles, and its number: no two of them at a time.

    Attributes
    ----------
    over : Signal
    """

    def __init__(self, m, unit, result, extra, word, current, running, issue, last, en, begins, written):
        tree = unit.reduce_cycles - 1
        reduces, function = word.reduce.any(), has_function(word)
        operands = [(word[f"{name}_source"], word[name]) for name in "abc"]

        pending = [Signal(name=f"pending_{number}") for number in range(SCALARS)]
        puts = reduces | (word.target == Target.SCALAR)
        puts_index = Signal(4)
        written_index = Signal(4)
        m.d.comb += [puts_index.eq(Mux(reduces, word.reduce_index, word.target_index)), written_index.eq(
            Mux(written[0][0], written[0][1], written[1][1]))]
        for number, bit in enumerate(pending):
            with m.If(en & (written[0][0] | written[1][0]) & (written_index == number)):
                m.d.sync += bit.eq(0)
            with m.If(begins & puts & (puts_index == number)):
                m.d.sync += bit.eq(1)
        unput = Array(pending)
        held = [unput[number] & (source == Source.SCALAR) for source, number in operands]
        held.append(unput[puts_index] & puts)

        counts = [Signal(range(result + extra + 1), name=f"register_{number}_in") for number in range(unit.registers)]
        for number, count in enumerate(counts):
            own = running & (current.target == Target.REGISTER) & (current.target_index == number)
            with m.If(en & count.any() & (issue | ~own)):
                m.d.sync += count.eq(count - 1)
            with m.If(begins & (word.target == Target.REGISTER) & (word.target_index == number)):
                m.d.sync += count.eq(Mux(function, result + extra, result))
        unwritten = Array(count.any() for count in counts)
        held += [unwritten[number] & (source == Source.REGISTER) for source, number in operands]

        totals = Signal(max(1, (tree + extra).bit_length()))    # a unit of one lane has no tree
        with m.If(en):
            with m.If(issue & last & current.reduce.any()):
                m.d.sync += totals.eq(tree + Mux(has_function(current), extra, 0))
            with m.Elif(totals.any()):
                m.d.sync += totals.eq(totals - 1)
        earlier = running & current.reduce.any() | (totals > Mux(function, extra, 0))
        held.append((reduces | (word.kind == Kind.SCALAR)) & earlier)

        self.over = Signal(name="over")
        m.d.comb += self.over.eq((~running | issue & last) & ~Cat(held).any())
