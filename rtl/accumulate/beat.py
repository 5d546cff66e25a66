"""What travels through the core with a row of X."""

from ..lib.layout import StructLayout


def beat_layout():
    """What travels with a row of X, from its acceptance to its sums.

    ``valid``: a row is there. ``first``: its sums start a new accumulation. ``opens`` and ``closes``: the pass is the
    first, the last of its block. ``last``: the row completes the command. ``top``: it is the first of a pass.
    ``bank``: accumulator bank.
    """
    return StructLayout({name: 1 for name in ("valid", "first", "opens", "closes", "last", "top", "bank")})
