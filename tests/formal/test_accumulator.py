# amaranth: UnusedElaboratable=no
"""Running sums of block sums in floats, from any state and for all inputs: a row's word becomes what it was, plus the
scaled sum of each segment; the page: docs/numerics.md, sections 3 and 4.

Terms and additions are hollow, functions of which nothing is known; ``test_scaled.py`` proves that they are exact but
for one rounding each.
"""

import re
from dataclasses import replace

import pytest
from amaranth import Const, Shape
from z3 import And, BitVecVal, Extract, If, Implies, Not, Or

from hbfp.design import FLOAT_SUMS, Design
from hbfp.format import HBFPFormat
from rtl.accumulate.accumulator import Accumulator
from rtl.accumulate.signatures import beat_layout
from rtl.fp32.scaled_add import ScaledAdd, Term
from tests.cases import sweep
from tests.formal.cycles import Cycles, Hollow
from tests.formal.views import Fields, chosen, number, part, signed

#: Words of the memories, and bits of exact exponents.
DEPTH, EXACT = 4, 20


class Row:
    """A row of X, shown in cycle 0: what it brings, and what becomes of its word.

    Parameters
    ----------
    at : list of namespace
        Signals in each cycle.
    unit : Accumulator
    """

    def __init__(self, at, unit):
        self.at, self.params, self.layout = at, unit.params, unit.w[0].shape()
        self.beat, self.address = Fields(at[0].west__beat, beat_layout()), at[0].west__address
        self.bank = self.beat.bank if self.params.banks > 1 else False

    def contents(self, cycle, bank):
        """The words of a bank in a cycle."""
        return [vars(self.at[cycle])[f"bank{bank}.contents[{word}]"] for word in range(DEPTH)]

    def word(self, cycle, column):
        """A column's word in a cycle."""
        words = [part(chosen(self.contents(cycle, bank), self.address), self.params.accumulation.width, column)
                 for bank in range(self.params.banks)]
        return If(self.bank, words[-1], words[0])

    def scale(self, s, column):
        """The exponents of X and W for a segment's sum in a column, and whether one of them is invalid.

        The weights' are those that come with the row, or those that came before.
        """
        begin = s * self.params.spacing
        now, new = vars(self.at[begin]), Fields(vars(self.at[begin])[f"w__{s}"], self.layout)
        held = column - column % self.params.scale_cols
        load, size = part(number(now["west__load"], self.params.segments), 1, s) == 1, self.params.scales.column
        exponent = If(load, part(new.exponent, size, held), now[f"s{s}_c{held}_w"])
        invalid = If(load, part(number(new.invalid, self.params.columns), 1, held) == 1, now[f"s{s}_c{held}_w_invalid"])
        return (signed(now[f"west__exponent__{s}"], EXACT), signed(exponent, EXACT),
                Or(now[f"west__invalid__{s}"], invalid))

    def sum(self, s, column):
        """The sum of a segment in a column."""
        now = self.at[1 + s * self.params.spacing]
        return part(vars(now)[f"sums__{s}"], self.params.sums.width, column)


def accumulator_of(**options):
    """The accumulator of a design, with few words."""
    return Accumulator.made(replace(Accumulator.Parameters.of(Design(**options)), depth=DEPTH))


def functions_of(unit):
    """What makes a term, and what adds one, as functions, by the names of their instances."""
    accumulation, scales, width = unit.params.accumulation, unit.params.scales, unit.params.sums.width
    offset, low, high = accumulation.offset(width), 1 << scales.row - 1, 1 << scales.column - 1
    # As many bits as hold any exponent.
    bits = (Const(0, range(offset - low, offset + high)) + Const(0, Shape(scales.column, signed=True))).shape().width
    return {r"term\d+_\d+": Hollow("term", Term(width, bits, accumulation.fmt), o=accumulation.term),
            r"add\d+_\d+": Hollow("plus", ScaledAdd(fmt=accumulation.fmt, width=width), o=accumulation.registers)}


def row_law(unit, at, term, plus):
    """Each column's word is the sum of what it was when it was read, or zero, and of the terms; no other is written.
    """
    row, params = Row(at, unit), unit.params
    beat, width = row.beat, params.accumulation.width
    given, laws = [beat.valid, beat.closes], []
    reads = vars(at[params.read])["draining"]
    # An exponent of X is one of a block's, of which something was taken off.
    given += [vars(at[s * params.spacing])[f"west__exponent__{s}"] < 1 << params.scales.column - 1
              for s in range(params.segments)]
    given += [Implies(row.bank if bank else Not(row.bank), part(reads, 1, bank) == 0) for bank in range(params.banks)]
    for column in range(params.columns):
        word = If(beat.first, BitVecVal(0, width), row.word(params.read, column))
        for s in range(params.segments):
            exponent, other, invalid = row.scale(s, column)
            exponent = Extract(term.sizes["exponent"] - 1, 0, exponent + other + params.accumulation.offset(
                params.sums.width))
            word = plus(a=word, b=term(i=row.sum(s, column), exponent=exponent, invalid=number(invalid, 1)))
        laws.append(row.word(params.latency + 1, column) == word)
    for bank in range(params.banks):
        laws += [Or(And(row.address == place, row.bank if bank else Not(row.bank)), before == after)
                 for place, (before, after) in enumerate(zip(
                     row.contents(params.latency, bank), row.contents(params.latency + 1, bank), strict=True))]
    return Implies(And(*given), And(*laws))


def holds(law=row_law, **options):
    """Whether the law holds of the accumulator of a design."""
    unit = accumulator_of(**options)
    cycles = Cycles.of(unit, (Term, ScaledAdd)).run(unit.params.latency + 2)
    parts, given = functions_of(unit), []
    for pattern, part_ in parts.items():
        found = (re.fullmatch(rf"({pattern})\.o", name) for name in vars(cycles.at[0]))
        given += part_.assumed(cycles.at, [match[1] for match in found if match])
    assert given
    return cycles.law(Implies(And(*given), law(unit, cycles.at, *parts.values())), 300,
                      "".join(part_.definition for part_ in parts.values()))


CASES = [{"format": HBFPFormat(mantissa=mantissa, block=(1, block)), "rows": rows, "cols": 4, "group": group,
          "accumulate": sums, "pipeline": pipeline, "banks": banks}
         for mantissa, block, rows, group, pipeline, banks in (
             (8, 32, 32, (8, 4), 0, 2), (4, 4, 4, (2, 2), 0, 1), (8, 4, 8, (2, 2), 0, 2), (4, 4, 12, (1, 2), 4, 2),
             (8, 8, 8, (1, 2), 7, 2))
         for sums in FLOAT_SUMS]


@pytest.mark.parametrize("options", sweep(len(CASES), CASES), ids=lambda options: "-".join(
    f"{value.mantissa}-{value.terms}" if name == "format" else str(value).replace(" ", "")
    for name, value in options.items()))
def test_running_sum_adds_the_scaled_sum(options):
    assert holds(**options)


def test_exponent_one_higher_is_seen():
    def law(unit, at, term, plus):
        def higher(exponent, **values):
            return term(exponent=exponent + 1, **values)
        higher.sizes = term.sizes
        return row_law(unit, at, higher, plus)
    assert not holds(law, format=HBFPFormat(mantissa=4, block=(1, 4)), rows=4, cols=2)
