"""What a machine of pods wrote against golden values and the simulator's cycles."""

from dataclasses import dataclass, field

import numpy as np

from hbfp.golden.pods.execute import execute
from hbfp.golden.pods.words import value_word, x_words

from ..bench.comparison import Comparison


@dataclass
class Check:
    """A program's run, compared.

    Attributes
    ----------
    name : str
    values : Comparison
        Rows of sums, operands and results.
    cycles : Comparison
        Begins of rounds, cycles of rows, and the end of the program.
    figures : dict
        For tables.
    """
    name: str
    values: Comparison = field(default_factory=Comparison)
    cycles: Comparison = field(default_factory=Comparison)
    figures: dict = field(default_factory=dict)

    @property
    def passed(self):
        """Whether anything was compared and nothing differed."""
        return self.values.compared > 0 and not self.values.mismatches and not self.cycles.mismatches


def expected(design, program, outcome, values):
    """(bank, cycle) -> (address, value) of all rows that are written, by kind; a bank has a row in the next cycle."""
    starts, machine = np.cumsum(outcome.plan.length) - outcome.plan.length, outcome.machine
    found = {"sums": {}, "operands": {}, "results": {}}

    def add(kind, t, cycles, spot, rows):
        for n, word in enumerate(rows):
            found[kind][spot[0], int(starts[t]) + cycles + n] = spot[1] + n, word
    for (t, n), sums in values.sums.items():
        add("sums", t, machine.product_cycles - 1, program.operations[t][n].out, map(value_word, sums))
    for (t, n), results in values.results.items():
        act = program.activations[t][n]
        if act.x is not None:
            add("operands", t, machine.sum_cycles, act.x, x_words(design, values.tiles[t, n]))
        else:
            add("results", t, machine.kept_cycles, (act.source.bank, act.kept), map(value_word, results))
    return found


def check(name, design, compiled, written):
    """Compare a run with golden values and with the simulator."""
    program, outcome = compiled.program, compiled.outcome
    result = Check(name)
    wanted = expected(design, program, outcome, execute(program, design.core.format))
    last = 0
    for kind, rows in wanted.items():
        got = written.events[kind]
        result.cycles.compared += len(rows)
        odd = rows.keys() ^ got.keys()
        result.cycles.mismatches += len(odd)
        result.cycles.first += [f"{name}: {kind} of bank {bank} in cycle {cycle} only in "
                                f"{'the Verilog' if (bank, cycle) in got else 'the simulator'}"
                                for bank, cycle in sorted(odd, key=lambda place: place[::-1])[:3]]
        for place in rows.keys() & got.keys():
            result.values.compared += 1
            if rows[place] != got[place]:
                result.values.mismatches += 1
                (row, value), (at, want), (bank, cycle) = got[place], rows[place], place
                result.values.first.append(f"{name}: {kind} of bank {bank} in cycle {cycle}: row {row} {value:x} "
                                           f"instead of row {at} {want:x}")
        if kind != "sums":
            last = max([last, *(cycle + 1 for _, cycle in got)])
    result.values.add(f"{name}: kept", *(np.array(list(each), object) for each in (
        [written.kept.get((bank, row)) for (bank, _), (row, _) in wanted["results"].items()],
        [value for _, value in wanted["results"].values()])))
    starts = np.cumsum(outcome.plan.length) - outcome.plan.length
    for what, got, want in (("begins of rounds", written.begins, starts), ("cycles", [last], [outcome.cycles])):
        result.cycles.add(f"{name}: {what}", np.array(got), np.array(want)) if len(got) == len(want) else \
            result.cycles.first.append(f"{name}: {what}: {len(got)} instead of {len(want)}")
        result.cycles.mismatches += len(got) != len(want)
    result.figures = {"rounds": program.rounds, "operations": outcome.tiles.operations, "cycles": last,
                      "simulated": outcome.cycles, "lead": written.lead}
    return result
