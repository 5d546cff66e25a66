"""Nested loops in hardware: counters, and addresses that go with them."""

from amaranth import Module, Signal


class Loops:
    """Counters of nested loops, the innermost first; plain logic inside a component.

    Parameters
    ----------
    m : Module
    name : str
        Prefix of the signals.
    widths : sequence of int
        Bits of each counter.
    start, step : Value
        In this cycle, all counters are set to 0; the innermost goes on, with what follows. ``start`` wins.

    Attributes
    ----------
    counter : list of Signal
    ends : list of Signal
        Whether each loop is at its last value; to be driven by the user, of :attr:`counter` or anything else.
    carry : list of Signal
        Whether loop n goes on with the next step, since all inside it are at their ends.
    last : Signal
        All loops are at their ends.
    """

    def __init__(self, m: Module, name, widths, start, step):
        self._m, self._start, self._step = m, start, step
        self.counter = [Signal(width, name=f"{name}_count{n}") for n, width in enumerate(widths)]
        self.ends = [Signal(name=f"{name}_end{n}") for n in range(len(widths))]
        self.carry, self.last = [], Signal(name=f"{name}_last")
        inside = 1
        for n, (counter, end) in enumerate(zip(self.counter, self.ends, strict=True)):
            carry = Signal(name=f"{name}_carry{n}")
            m.d.comb += carry.eq(inside & ~end)
            self.carry.append(carry)
            inside = inside & end
            with m.If(step & carry):
                m.d.sync += counter.eq(counter + 1)
            with m.Elif(step & inside):
                m.d.sync += counter.eq(0)
            with m.If(start):
                m.d.sync += counter.eq(0)
        m.d.comb += self.last.eq(inside)

    def count(self, counts, first=0):
        """Loop ``first`` + n ends when its counter is one less than ``counts[n]``, which is at least 1."""
        self._m.d.comb += [end.eq(counter + 1 == count)
                           for end, counter, count in zip(self.ends[first:], self.counter[first:], counts, strict=True)]

    def follow(self, name, width, first, strides):
        """A number that starts at ``first`` and grows by ``strides[n]`` with loop n, modulo 2^width.

        A stride is a value, or None for a loop that leaves the number as it was when the loop began. Each loop with a
        stride has a register of what the number was when its current round began; one adder serves all.
        """
        m, bases = self._m, []
        for n, by in enumerate(strides):    # a loop that changes nothing begins as the one outside it does
            bases.append(None if by is None and n + 1 < len(strides) else
                         Signal(width, name=f"{name}{n}", reset_less=True))
        for n in reversed(range(len(bases) - 1)):
            bases[n] = bases[n + 1] if bases[n] is None else bases[n]
        base, stride = Signal(width, name=f"{name}_base"), Signal(width, name=f"{name}_stride")
        following = Signal(width, name=f"{name}_next")
        for n, by in reversed(list(enumerate(strides))):
            with m.If(self.carry[n]):
                m.d.comb += [base.eq(bases[n]), stride.eq(0 if by is None else by)]
        m.d.comb += following.eq(base + stride)
        above = 0    # whether a loop further out goes on, which begins this one anew
        for n in reversed(range(len(strides))):
            above = above | self.carry[n]
            if n + 1 < len(strides) and bases[n] is bases[n + 1]:
                continue
            with m.If(self._step & above):
                m.d.sync += bases[n].eq(following)
            with m.If(self._start):
                m.d.sync += bases[n].eq(first)
        return bases[0]
