"""Ports between units and memories, as a unit sees them, and what every unit has."""

from types import SimpleNamespace

from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, Signature

from .fields import held_fields, held_layout, offered_layout
from .layouts import (
    ADDRESS_BITS,
    p_layout,
    v_layout,
    w_index_layout,
    w_layout,
    w_row_layout,
    w_scales_layout,
    x_row_layout,
    x_word_layout,
)


def read_port(shape):
    """Word ``addr`` is asked for while ``en`` is high, until ``grant`` in the same cycle.

    ``grant`` does not follow from the port's own ``en``: it is high whenever a wish would be granted. ``data`` is the
    word in the cycle after both were high, and until the cycle after the memory's next such read for anyone: it is the
    memory's own output, and who needs it for longer keeps it. ``fault`` comes with the grant of an address beyond the
    memory, which reads nothing.
    """
    return Signature({"en": Out(1), "addr": Out(ADDRESS_BITS), "grant": In(1), "fault": In(1), "data": In(shape)})


def write_port(shape, parts=0):
    """``data`` goes to ``addr`` at the end of the cycle in which ``en`` and ``grant`` are high; a read sees it then.

    ``grant`` as of :func:`read_port`. ``mask``, where a word has parts that can be written alone, has a bit for each of
    them. ``fault`` comes with the grant of an address beyond the memory, which writes nothing.
    """
    mask = {"mask": Out(parts)} if parts else {}
    return Signature({"en": Out(1), "addr": Out(ADDRESS_BITS), "data": Out(shape), **mask, "grant": In(1),
                      "fault": In(1)})


def v_read(params):
    """A read port of V."""
    return read_port(v_layout(params))


def v_write(params):
    """A write port of V; ``mask`` has a bit for each lane."""
    return write_port(v_layout(params), params.lanes)


def x_read(params):
    """A read port of X: ``addr`` is a row's, or that of its first piece.

    Where weights may be sparse, of all words that a row of a sparse command has.
    """
    return read_port(x_row_layout(params))


def x_write(params):
    """A write port of X: ``addr`` is a piece's, or that of the first of those that a word of V has."""
    return write_port(x_word_layout(params))


def w_read(params):
    """A read port of W: ``addr`` is a row; with it come the exponents and flags of its segment, ``scales``, if any.

    So does ``index``, where weights may be sparse.
    """
    members = dict(read_port(w_row_layout(params)).members)
    return Signature(members | ({"scales": In(w_scales_layout(params))} if params.exponent else {}) | (
        {"index": In(w_index_layout(params))} if params.index else {}))


def w_write(params):
    """A write port of the mantissas of W: ``addr`` is the first of ``packed`` rows; ``mask`` has a bit for each."""
    return write_port(w_layout(params), params.packed)


def w_scales_write(params):
    """A write port of the exponents and flags of W: ``addr`` is a row of the segment."""
    return write_port(w_scales_layout(params))


def w_index_write(params):
    """A write port of the indices of W: ``addr`` is a row."""
    return write_port(w_index_layout(params))


def p_read():
    """A read port of P: ``addr`` is an instruction's."""
    return read_port(64)


def p_write(params):
    """A write port of P: ``addr`` is a beat's, of as many instructions as it has."""
    return write_port(p_layout(params))


def unit_signature(opcode, extras=()):
    """What issue and a unit tell each other, as issue sees it, in an accelerator whose instructions have ``extras``.

    ``instruction``: taken when the unit can begin with it; the payload is the fields that it uses then. ``held``, if
    there are any: those that it uses later, from the cycle after it is taken until the next one is. ``done``: high for
    one cycle for each instruction, in their order, in the cycle in which its last effect is written or later; memory
    has it in the next.
    """
    held = {"held": Out(held_layout(opcode, extras))} if held_fields(opcode) else {}
    return Signature({"instruction": Out(stream.Signature(offered_layout(opcode, extras))), **held, "done": In(1)})


def unit_members(opcode, extras=()):
    """What every unit has: its side of :func:`unit_signature`, and ``fault``: the unit refuses its instruction."""
    return {**unit_signature(opcode, extras).flip().members, "fault": Out(1)}


def view(component, signature, prefix=""):
    """Some ports of a component as an interface: those of a signature, to whose names it adds a prefix."""
    return SimpleNamespace(signature=signature, **{name: getattr(component, prefix + name)
                                                   for name in signature.members})
