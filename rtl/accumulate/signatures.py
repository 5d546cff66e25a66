"""What travels with a row of X to its sums, and what is asked of the memories that hold them."""

from amaranth import signed
from amaranth.lib.wiring import Out, Signature

from ..lib.layout import StructLayout, index
from ..number.streams import block_scale_layout

#: What is known of a row besides where operands may be wide: see :func:`beat_layout`.
DIGITS = ("high", "waits", "pair")


def beat_layout(wide=False):
    """What travels with a row of X, from its acceptance to its sums.

    ``valid``: a row is there. ``first``: its sums start a new accumulation. ``opens`` and ``closes``: the pass is the
    first, the last of its block. ``last``: the row completes the command. ``top``: it is the first of a pass.
    ``bank``: accumulator bank.

    Only if operands may be ``wide``: ``high``: a row's high digits are there, and its sums are held. ``waits``: the
    low ones have not come yet. ``pair``: the digits of a weight lie in two columns. Such a row is ``valid`` with its
    low digits.
    """
    names = ("valid", "first", "opens", "closes", "last", "top", "bank", *(DIGITS if wide else ()))
    return StructLayout({name: 1 for name in names})


def pass_layout(wide=False):
    """What the sums of a pass need to know of a row; names as in :func:`beat_layout`."""
    return StructLayout({name: 1 for name in ("valid", "opens", "closes", *(DIGITS if wide else ()))})


def row_signature(depth, beat, exponent=0, segments=0, skips=False):
    """What accumulators pass on from west to east about a row of X.

    ``beat``: about the row. ``address``: its word, of ``depth``. Only with blocks, ``load``, bit s: the column
    exponents of segment s change; by segment, ``exponent`` and ``invalid``: the row's exponent and its flag. Only
    where segments may be joined, ``skip``, bit s: the sums of segment s do not count.
    """
    members = {"beat": Out(beat), "address": Out(index(depth))}
    if exponent:
        members |= {"load": Out(segments), "exponent": Out(signed(exponent)).array(segments),
                    "invalid": Out(1).array(segments)} | ({"skip": Out(segments)} if skips else {})
    return Signature(members)


def read_signature(depth):
    """Word ``address`` of ``depth`` is asked for while ``en`` is high; what was read is held while it is low."""
    return Signature({"en": Out(1), "address": Out(index(depth))})


def turn_signature(exponent, columns, depth):
    """One column's turn at what ``columns`` share; see :class:`rtl.accumulate.turn.Turn` for its cycles.

    ``column``: whose turn it is, in cycle 0. ``scale``: exponent of ``exponent`` bits and flag of the row, in cycle
    ``scale``. ``read_address``: running accumulator, a cycle ahead of ``add``. ``fresh``: the block is its command's
    first, in cycle ``add``. ``keep``, ``write_address``: whether and where the new one is kept, in cycle ``keep``.
    ``result``, ``row``: columns whose result is complete, and its word, in cycle ``result``.
    """
    place = index(depth * columns)
    return Signature({
        "scale": Out(block_scale_layout(exponent)), "column": Out(index(columns)), "fresh": Out(1),
        "read_address": Out(place), "keep": Out(1), "write_address": Out(place),
        "result": Out(columns), "row": Out(index(depth))})
