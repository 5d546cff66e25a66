"""When a unit uses the fields of its instruction: what its queue offers, and what stays there until the next one.

The fields that a unit uses in the cycle in which it takes an instruction are at the head of its queue, and all others
at the output of a second memory, which is read as the instruction is taken: the unit needs no register for them.
"""

from hbfp.isa.instructions import FIELDS, VECTOR_INPUTS, VECTOR_OUTPUTS, Opcode, fields_of

from .layouts import fields_layout

#: Fields that are used as the instruction is taken; of the units that are not here, all.
_AT_ONCE = {
    Opcode.CONVERT: ("base", "target", "place"),
    Opcode.WEIGHTS: ("base",),
    Opcode.MULTIPLY: ("first", "scale", "bias", "relu", "tiles", "base", "rows0", "rows1", "x", "y", "wide_x",
                      "wide_w", "sparse"),
    Opcode.DRAIN: ("base",),
    Opcode.VECTOR: ("program", "before", *(f"{name}_base" for name in (*VECTOR_INPUTS, *VECTOR_OUTPUTS))),
}
#: Of these, those that are used later, too; and what only the rules of the instruction set use.
_TWICE = {Opcode.MULTIPLY: ("rows0", "rows1", "wide_x"), Opcode.VECTOR: ("before",)}
_NEVER = {Opcode.MULTIPLY: ("last",)}


def _chosen(opcode, extras, wanted):
    """Those of an opcode's fields that are wanted, in their order."""
    return tuple(field for field in fields_of(opcode, extras) if wanted(field.name))


def offered_fields(opcode, extras=()):
    """Fields that are used as an instruction is taken, in an accelerator that has these extras."""
    return _chosen(opcode, extras, lambda name: opcode not in _AT_ONCE or name in _AT_ONCE[opcode])


def held_fields(opcode, extras=()):
    """Fields that are used later."""
    if opcode not in _AT_ONCE:
        return ()
    without = {*_AT_ONCE[opcode], *_NEVER.get(opcode, ())} - {*_TWICE.get(opcode, ())}
    return _chosen(opcode, extras, lambda name: name not in without)


def offered_layout(opcode, extras=()):
    """A struct of :func:`offered_fields`."""
    return fields_layout(offered_fields(opcode, extras))


def held_layout(opcode, extras=()):
    """A struct of :func:`held_fields`."""
    return fields_layout(held_fields(opcode, extras))


def place(opcode, name):
    """The slice of an instruction, its header left out, that is a field."""
    position = 0
    for field in FIELDS[opcode]:
        if field.name == name:
            return slice(position, position + field.width)
        position += field.width
    raise KeyError(name)
