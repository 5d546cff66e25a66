"""What the stages of the datapath share: values on their way, registers behind them, the choice among functions."""

from amaranth import Cat, Const, Mux

from ..raw import named
from ..times import times


class Path:
    """A datapath as it is built, stage by stage.

    Parameters
    ----------
    m : Module
    pipe : rtl.fp32.operation.Pipeline
    cuts : container of str
        Cuts that the set of functions has.
    functions : tuple of str
        The set.
    select : Value or None
        Position of the chosen function, if there are several.
    multiplier : str
        As in :class:`~rtl.fp32.times.Times`.

    Attributes
    ----------
    live : dict of str to Value
        What later stages still need: each cut has a register for every one of them.
    need : set of str
        The functions.
    """

    def __init__(self, m, pipe, cuts, functions, select=None, multiplier="plain"):
        self.m, self.pipe, self.cuts, self.functions, self.need = m, pipe, cuts, functions, set(functions)
        self.live = {} if select is None else {"select": select}
        self.multiplier = multiplier

    def times(self, a, b, name, low):
        """A product, without its lowest bits, by a submodule."""
        return times(self.m, a, b, name, low, self.multiplier)

    def any(self, group):
        """Whether the chosen function is in ``group``; a constant where the set decides it."""
        if not self.need & set(group):
            return Const(0, 1)
        if self.need <= set(group):
            return Const(1, 1)
        chosen = self.live["select"]
        hits = [chosen == i if i else ~chosen.any() for i, name in enumerate(self.functions) if name in group]
        return named(self.m, Cat(hits).any(), "is_" + "_".join(sorted(self.need & set(group))))

    def among(self, choices, default=None):
        """Select by function: ``choices`` is {names: value}; only functions of the set cost anything."""
        result = default
        for group, value in choices.items():
            group = {group} if isinstance(group, str) else set(group)
            if self.need & group:
                result = value if result is None else Mux(self.any(group), value, result)
        return result

    def cut(self, name):
        """Registers at ``name`` for all that is live."""
        if name not in self.cuts:
            return
        keys = list(self.live)
        values = self.pipe.cut(name, *(None if isinstance(self.live[key], Const) else self.live[key] for key in keys))
        self.live.update((key, value) for key, value in zip(keys, values, strict=True) if value is not None)
