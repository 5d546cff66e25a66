"""What a machine of pods wrote against golden values and the simulator's cycles."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hbfp.golden.pods.execute import Values
from hbfp.golden.pods.machine import machine
from hbfp.golden.pods.program import Program
from hbfp.golden.pods.words import value_word, x_words
from hbfp.pods import PodsDesign

from ..bench.comparison import Comparison
from .run import Events, Written


@dataclass
class Check:
    """A program's run, compared.

    Attributes
    ----------
    name : str
    values : Comparison
        Rows of sums, operands and results, and what a host reads in the end.
    cycles : Comparison
        Begins of rounds, cycles of rows, and the end of the program.
    figures : dict
        Rounds, operations and cycles, for tables.
    """
    name: str
    values: Comparison = field(default_factory=Comparison)
    cycles: Comparison = field(default_factory=Comparison)
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether anything was compared and nothing differed."""
        return self.values.compared > 0 and not self.values.mismatches and not self.cycles.mismatches


def expected(design: PodsDesign, program: Program, values: Values) -> dict[str, Events]:
    """What is written: kind -> (bank, cycle) -> (address, value); what is written in a cycle is there in the next."""
    cycles = machine(design)
    found: dict[str, Events] = {"sums": {}, "operands": {}, "results": {}}

    def add(kind, t, late, spot, rows):
        for n, word in enumerate(rows):
            found[kind][spot[0], t * program.length + late + n] = spot[1] + n, word
    for (t, n), sums in values.sums.items():
        add("sums", t, cycles.product_cycles - 1, program.operations[t][n].out, map(value_word, sums))
    for (t, n), results in values.results.items():
        one = program.passes[t][n]
        if one.x is not None:
            add("operands", t, cycles.sum_cycles, one.x, x_words(design, values.tiles[t, n]))
        if one.keep:
            add("results", t, cycles.kept_cycles, one.post, map(value_word, results))
    return found


def check(name: str, design: PodsDesign, program: Program, written: Written, values: Values,
          cycles: int | None = None) -> Check:
    """Compare a run with golden ``values``, and with the ``cycles`` that the simulator has for all of it, if given."""
    result, wanted = Check(name), expected(design, program, values)
    for kind, rows in wanted.items():
        _compare_rows(result, kind, written.events[kind], rows)
    kept = {(one.post.bank, one.post.address + row): value_word(line)
            for (t, n), lines in values.results.items() for one in [program.passes[t][n]] if one.last and one.keep
            for row, line in enumerate(lines)}
    result.values.add(f"{name}: what a host reads", *(np.array([each.get(place) for place in kept], object)
                                                      for each in (written.kept, kept)))
    last = max([cycle + 1 for kind in ("operands", "results") for _, cycle in written.events[kind]], default=0)
    starts = np.arange(program.rounds) * program.length
    if len(written.begins) == program.rounds:
        result.cycles.add(f"{name}: begins of rounds", written.begins, starts)
    else:
        result.cycles.mismatches += 1
        result.cycles.first.append(f"{name}: {len(written.begins)} rounds instead of {program.rounds}")
    if cycles is not None:
        result.cycles.add(f"{name}: cycles", np.array([last]), np.array([cycles]))
    result.figures = {"rounds": program.rounds, "operations": sum(map(len, program.operations)), "cycles": last,
                      "simulated": cycles, "lead": written.lead}
    return result


def _compare_rows(result, kind, got, rows):
    """Rows of one kind: those of a bank and a cycle that both have, by place and bits; the others by their cycle."""
    odd = rows.keys() ^ got.keys()
    result.cycles.compared += len(rows)
    result.cycles.mismatches += len(odd)
    result.cycles.first += [f"{result.name}: {kind} of bank {bank} in cycle {cycle} only in "
                            f"{'the Verilog' if (bank, cycle) in got else 'the simulator'}"
                            for bank, cycle in sorted(odd, key=lambda place: place[::-1])[:3]]
    for place in rows.keys() & got.keys():
        result.values.compared += 1
        if rows[place] != got[place]:
            result.values.mismatches += 1
            (row, value), (at, want), (bank, cycle) = got[place], rows[place], place
            result.values.first.append(f"{result.name}: {kind} of bank {bank} in cycle {cycle}: row {row} {value:x} "
                                       f"instead of row {at} {want:x}")
