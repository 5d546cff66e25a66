"""VECTORs of many rows as several of fewer rows, where a row depends on no other."""

from collections.abc import Mapping
from math import ceil

from hbfp.golden.spec.vector import Kind, field_values
from hbfp.isa.instructions import VECTOR_INPUTS, VECTOR_OUTPUTS, Instruction
from hbfp.isa.vector_words import read
from hbfp.program import Program

from .rewriting import Rewritten, rewritten
from .yields import followed

_PLACES = 1 << 18


def rows(program: Program) -> dict[int, int]:
    """Number of each VECTOR that may be divided -> its rows."""
    found, longest = {}, program.accelerator.row_words * program.accelerator.lanes
    for number, words in read(program):
        each = program.instructions[number]
        count = each["count0"] * each["count1"]
        if count > 1 and None not in words and _apart(words[:each["before"]], words[each["before"]:], longest):
            found[number] = count
    return found


def _apart(before, body, longest):
    """Whether iterations are apart: none reads what another leaves, and what comes before them may come again."""
    fields = [field_values(word) for word in before]
    if any(f["kind"] in (Kind.VECTOR, Kind.SCALAR) for f in fields):
        return False
    once, length = followed(before, longest)
    each, _ = followed(body, length)
    lengths = Kind.LENGTH in [field_values(word)["kind"] for word in body]
    return not lengths and not each.reads.keys() & each.writes.keys() and not once.writes.keys() & each.writes.keys()


def divided(program: Program, into: Mapping[int, int]) -> Rewritten:
    """A program with about so many VECTORs in place of each of these, of whole rows each, as even as those divide.

    Raises
    ------
    ValueError
        If the rows of one depend on each other, or are fewer.
    """
    may, groups = rows(program), {}
    for number, parts in into.items():
        if not 1 <= parts <= may.get(number, 0):
            raise ValueError(f"Instruction {number} must be a VECTOR of {parts} rows or more that are apart")
        groups[number] = _parts(program.instructions[number], parts)
    return rewritten(program, groups)


def _parts(each, parts):
    """A VECTOR as several: of whole outer iterations, or of a part of one."""
    inner, outer = each["count0"], each["count1"]
    high = ceil(outer / parts)
    wide = inner if parts <= outer else ceil(inner / ceil(parts / outer))
    return [_part(each, i0, min(wide, inner - i0), i1, min(high, outer - i1))
            for i1 in range(0, outer, high) for i0 in range(0, inner, wide)]


def _part(each, first, count, outer, high):
    """Rows ``first`` on of iterations ``outer`` on."""
    values = dict(each.values) | {"count0": count, "count1": high}
    for slot in (*VECTOR_INPUTS, *VECTOR_OUTPUTS):
        if each["taps"] and slot in VECTOR_INPUTS[1:]:    # says where a window's rows lie
            continue
        step = first * each[f"{slot}_stride0"] + outer * each[f"{slot}_stride1"]
        if step:
            values[f"{slot}_base"] = (each[f"{slot}_base"] + step) % _PLACES
    return Instruction(each.opcode, values)
