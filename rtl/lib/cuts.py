"""Registers at the cuts of a datapath."""

from itertools import combinations

from amaranth import Const, Signal, Value


def choose_cuts(cuts, depth):
    """The ``depth`` cuts whose slowest segment is shortest.

    Parameters
    ----------
    cuts : dict of str to float
        Cut name -> share of the combinational delay before it, ascending.
    """
    def slowest(chosen):
        marks = [0.0, *(cuts[name] for name in chosen), 1.0]
        return max(high - low for low, high in zip(marks, marks[1:], strict=False))

    if len(cuts) <= 12:
        return frozenset(min(combinations(cuts, depth), key=slowest))
    # Many evenly spaced cuts (rows of digits): take the nearest to equal shares.
    names, left = list(cuts), []
    for k in range(depth):
        rest = names[:len(names) - (depth - 1 - k)]
        left.append(min(rest, key=lambda name: abs(cuts[name] - (k + 1) / (depth + 1))))
        names = names[names.index(left[-1]) + 1:]
    return frozenset(left)


class Pipeline:
    """Registers at the chosen cuts of a datapath; they hold while ``en`` is low.

    ``chain``: whether its adders are carry chains, and no parallel prefixes.
    """

    def __init__(self, m, active, en, chain=False):
        self.m, self.active, self.en, self.chain = m, active, en, chain

    def cut(self, name, *values):
        """The ``values``, as a tuple, behind the register at cut ``name``, if there is one.

        A value may be a ``Value``, a tuple of them, an object with ``map``, or ``None``.
        """
        if name not in self.active:
            return values
        return tuple(self._hold(name, value) for value in values)

    def _hold(self, name, value):
        if value is None or isinstance(value, (int, Const)):
            return value
        if isinstance(value, (tuple, list)):
            return tuple(self._hold(name, part) for part in value)
        if not isinstance(value, Value):
            return value.map(lambda part: self._hold(name, part))
        held = Signal(value.shape(), name=f"{name}_{value.name}" if isinstance(value, Signal) else f"{name}_held",
                      reset_less=True)
        with self.m.If(self.en):
            self.m.d.sync += held.eq(value)
        return held
