"""Whether a word is an instruction that the accelerator may execute, from the rules of the instruction set."""

from functools import reduce
from operator import and_, or_

from amaranth import Cat, Const, Signal, Value

from hbfp.isa.instructions import EXTRAS, FIELDS, HEADER, WAITS, Opcode, fields_of, width
from hbfp.isa.legal import RULES, Must

from .layouts import fields_layout, header_layout


def any_of(terms):
    """Whether one of the terms holds."""
    return reduce(or_, terms, Const(0, 1))


def _outside(value, low, high):
    """Comparisons of an unsigned value with bounds, those left out that always hold."""
    return ([value < low] if low else []) + ([value > high] if high < (1 << len(value)) - 1 else [])


def _breaks(rule, fields, sizes):
    """Whether fields break a rule."""
    bounds = rule.bounds(sizes)
    applies = reduce(and_, (fields[name] == value for name, value in rule.when.items()), Const(1, 1))
    values = [Value.cast(fields[name]) for name in rule.fields]
    if rule.must is Must.ZERO:
        wrong = Cat(values).any()
    elif rule.must is Must.SOME:
        wrong = ~Cat(values).any()
    elif rule.must is Must.RANGE:
        wrong = any_of(term for value in values for term in _outside(value, bounds["low"], bounds["high"]))
    else:
        wrong = any_of(value[:bounds["step"].bit_length() - 1].any() for value in values)
    return applies & wrong


def illegal(m, word, sizes):
    """A signal: ``word`` is no legal instruction where sizes are as :func:`hbfp.isa.legal.sizes` names them.

    Combinational; golden twin: :mod:`hbfp.isa.legal`.
    """
    header = Signal(header_layout())
    m.d.comb += header.eq(word[:header_layout().size])
    result = Signal(name="illegal", init=1)
    waits = any_of(~header[f"wait{n}_unit"].any() & header[f"wait{n}_count"].any() for n in range(WAITS))
    with m.Switch(header.opcode):
        for opcode in Opcode:
            own = {field.name for field in fields_of(opcode, [extra for extra in EXTRAS if sizes[extra]])}
            known = FIELDS[opcode]    # up to the last that the accelerator has; those in between are zero
            while known and known[-1].name not in own:
                known = known[:-1]
            start, end = width(HEADER), width(HEADER) + width(known)
            wrong = [word[end:].any()]
            if known:
                fields = Signal(fields_layout(known), name=opcode.name.lower())
                m.d.comb += fields.eq(word[start:end])
                wrong += [Value.cast(fields[field.name]).any() for field in known if field.name not in own]
                wrong += [_breaks(rule, fields, sizes) for rule in RULES[opcode]
                          if {rule.fields[0], *rule.when} <= own and (
                              rule.must is not Must.MULTIPLE or rule.bounds(sizes)["step"] > 1)]
            if opcode == Opcode.NOP:
                wrong.append(fields.unit == 0)
            with m.Case(opcode):
                m.d.comb += result.eq(waits | any_of(wrong))
        with m.Default():
            m.d.comb += result.eq(1)
    return result
