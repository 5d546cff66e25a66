"""Trees of registers, so that no signal drives many loads in one cycle."""

from dataclasses import dataclass

from amaranth import Module, Shape, Signal, Value
from amaranth.lib.wiring import In, Out

from .component import Component
from .names import parameter


class Branch(Component):
    """A register of a tree: its input a cycle later.

    It is a module of its own, because synthesis would make one register of equal ones beside each other. Without a
    reset nothing stands before it, which a recipe could make a large gate.

    Parameters
    ----------
    width : int
    reset : bool
        Whether a reset clears it.

    Members
    -------
    i, o : ``In(width)``, ``Out(width)``
    """
    kind, apart = "branch", True

    @dataclass(frozen=True)
    class Parameters:
        width: int = parameter("w")
        reset: bool = parameter("reset", False)

    @staticmethod
    def ports(params):
        return {"i": In(params.width), "o": Out(params.width)}

    @property
    def latencies(self):
        """``result``: from ``i`` to ``o``."""
        return {"result": 1}

    def body(self, platform):
        m = Module()
        held = Signal(self.params.width, reset_less=not self.params.reset)
        m.d.sync += held.eq(self.i)
        m.d.comb += self.o.eq(held)
        return m


def branches(m, value, count, name, reset=False):
    """``count`` copies of a value, each a cycle later and behind a register of its own; views of its shape.

    Without ``reset`` they show what the value was before a reset for a cycle of it, and only then what it is.
    """
    width, found = len(Value.cast(value)), []
    shape = value.shape() if hasattr(value, "shape") else Shape(width)
    for n in range(count):
        m.submodules[f"{name}{n}"] = branch = Branch(width, reset)
        copy = Signal(shape, name=f"{name}_{n}")
        m.d.comb += [branch.i.eq(value), Value.cast(copy).eq(branch.o)]
        found.append(copy)
    return found
