"""How a beat's registers are read where the vector unit has one copy of them."""

from amaranth import Cat, Mux, Signal

from hbfp.golden.spec.vector import Source


class Fetches:
    """A beat of a pass that reads several registers reads one in a cycle, the last as it is issued.

    Plain logic inside a component. The last is that of the first operand that is a register; words of other registers,
    of operands b and c, come before, c's first, and are held until the beat goes.

    Parameters
    ----------
    m : Module
    current : View
        The pass that issues.
    running, issue, en, may : Value
        It issues; a beat goes; nothing is held; the bank that the beat reads is not written.

    Attributes
    ----------
    number : Value
        The register that is read now.
    takes : Signal
        A word is read that is not the beat's last.
    over : Signal
        None but the last is left.
    """

    def __init__(self, m, current, running, issue, en, may):
        is_register = {name: getattr(current, f"{name}_source") == Source.REGISTER for name in "abc"}
        last = Mux(is_register["a"], current.a, Mux(is_register["b"], current.b, current.c))
        self._early = {name: Signal(name=f"early_{name}") for name in "bc"}
        self._done, self._there = ({name: Signal(name=f"{way}_{name}") for name in "bc"} for way in ("done", "there"))
        self._kept = {name: Signal(name=f"kept_{name}", reset_less=True) for name in "bc"}
        asks = {name: Signal(name=f"asks_{name}") for name in "bc"}
        self.over, self.takes, self.number = Signal(name="fetched"), Signal(name="fetches"), Signal(4, name="fetch")
        same = current.b == current.c
        m.d.comb += [
            *(early.eq(is_register[name] & (getattr(current, name) != last)) for name, early in self._early.items()),
            *(asks[name].eq(early & ~self._done[name]) for name, early in self._early.items()),
            self.over.eq(~Cat(asks.values()).any()), self.takes.eq(running & en & may & ~self.over),
            self.number.eq(Mux(asks["c"], current.c, Mux(asks["b"], current.b, last)))]
        for name in "bc":
            gets = asks["b"] & (~asks["c"] | same) if name == "b" else asks["c"]
            m.d.sync += self._there[name].eq(self.takes & gets)
            with m.If(en & issue):
                m.d.sync += [self._done[name].eq(0), self._kept[name].eq(self._early[name])]
            with m.Elif(self.takes & gets):
                m.d.sync += self._done[name].eq(1)

    def words(self, m, data):
        """What each operand that is a register reads, from the ``data`` of their memory, a cycle behind the issue."""
        held = {name: Signal.like(data, name=f"held_{name}", reset_less=True) for name in "bc"}
        for name, word in held.items():
            with m.If(self._there[name]):
                m.d.sync += word.eq(data)
        return {"a": data, **{name: Mux(self._kept[name], word, data) for name, word in held.items()}}
