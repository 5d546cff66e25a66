"""Random designs over all options, and the verdict of the benches on each; also on designs with a planted fault."""

import random
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hbfp import describe, entries, files
from hbfp.arithmetic import KINDS
from hbfp.design import ACCUMULATES, MULTIPLIERS, PIPELINES, Design
from hbfp.format import EXPONENT_RANGE, MANTISSA_RANGE, ROUNDINGS, SUBNORMALS
from hbfp.options import design_from_values
from hbfp.sparsity import SHAPES
from hbfp.values import ContradictionError

from ..emit import EmitError, emit
from ..manifest import Manifest
from ..simulate.verilator import BuildError

#: Half of the designs are HBFP, of which more contradict themselves; the baselines have few options.
_ARITHMETICS = ("hbfp",) * 12 + ("int", "int", "fp32", "fma", "bf16", "fp16", "int8")
#: Operator of the emitted text -> what a planted fault makes of it.
_FAULTS = {"+": "-", "-": "+", "*": "+", "&": "|", "|": "&", "^": "|", "==": "!=", "<": ">="}
#: An escaped name on the left, such as ``\$7 ``, ends in a space; an index may follow.
_OPERATION = re.compile(r"^  assign (?P<left>\S[^=]*) = (?P<a>[^?;]+) (?P<operator>\+|-|\*|&|\||\^|==|<) "
                        r"(?P<b>[^?;]+);$", re.MULTILINE)


def draw(seed: int, number: int = 0, *, side: int = 6, block: int = 12, depth: int = 24, recoded: int = 64) -> Design:
    """The design of a number in the sequence of a seed; contradictions, and what is too large, are drawn again.

    Parameters
    ----------
    seed, number : int
        The sequence, and the place in it; a design does not depend on the others.
    side, block, depth : int
        Most rows and columns, elements of a block's side, and rows of a command.
    recoded : int
        Most mantissa bits of all elements where multipliers are recoded, which are built bit by bit.
    """
    rng = random.Random(f"{seed} {number}")
    while True:
        values = option_values(rng, rng.randint(1, side), rng.randint(1, side), block, depth)
        if not rng.randrange(5):
            values |= _sparse_values(rng, side, block)
        unserved = describe.unserved(Design, KINDS[values["arithmetic"]].use)
        try:
            design = design_from_values({name: value for name, value in values.items() if name not in unserved})
        except ContradictionError:
            continue
        if not design.recoded or design.rows * design.cols * design.format.mantissa <= recoded:
            return design


def _sparse_values(rng, side, block):
    """Values of options with which weights may be sparse, as few as have to be drawn for that."""
    kept, group = rng.choice(SHAPES[1:])
    terms = group * rng.randint(1, max(block // group, 1))
    return {"arithmetic": "hbfp", "sparse": (kept, group), "rows": kept * rng.randint(1, max(side // kept, 1)),
            "block": rng.choice(((1, terms), (terms, terms))), "group": None}


def option_values(rng: random.Random, rows: int, cols: int, block: int, depth: int) -> dict[str, Any]:
    """A value for every option of a core of these sides, each valid by itself.

    ``block`` and ``depth`` are the most elements of a block's side, and rows of a command.
    """
    divisors = [number for number in range(1, rows + 1) if not rows % number]
    terms = rng.choice((rng.randint(1, block), rng.choice(divisors), rows * rng.randint(1, 3)))
    values: dict[str, Any] = {
        "arithmetic": rng.choice(_ARITHMETICS), "mantissa": rng.randint(*MANTISSA_RANGE),
        "exponent": rng.randint(*EXPONENT_RANGE), "rows": rows, "cols": cols,
        "block": rng.choice(((1, terms), (terms, terms))), "accumulate": rng.choice(ACCUMULATES),
        "rounding": rng.choice(ROUNDINGS), "noise_bits": rng.randint(1, 24), "subnormals": rng.choice(SUBNORMALS),
        "group": rng.choice((None, (rng.randint(1, rows), rng.randint(1, cols)))),
        "multiplier": rng.choice(MULTIPLIERS), "pipeline": rng.choice((0, rng.randint(0, max(PIPELINES.values())))),
        "share": rng.choice((1, 1, 2, 4)), "depth": rng.randint(1, depth), "ragged": rng.choice((None, True)),
        "guard": rng.randint(0, 16), "growth": rng.randint(0, 16), "banks": rng.choice((2, 2, 1)),
        "weight_tiles": rng.choice((2, 2, 1)),
        "fabric": rng.choice(("gates", "gates", "fpga"))}
    least, most = values["mantissa"] + 1, min(2 * values["mantissa"] - 1, MANTISSA_RANGE[1])
    possible = values["arithmetic"] == "hbfp" and not cols % 2 and least <= most
    values["wide"] = rng.choice((0, rng.randint(least, most))) if possible else 0
    lanes = [number for number in range(1, cols + 1) if not cols % number]
    most = max(number for number in range(1, min(terms, rows) + 1) if not terms % number)
    fewer = [number for number in range(1, most + 1) if not most % number]
    return values | {"convert_lanes": rng.choice((0, 0, rng.choice(fewer))),
                     "side_lanes": rng.choice((0, rng.choice(lanes))),
                     "weight_clock": rng.choice(("free", "free", "gated"))}


@dataclass(frozen=True)
class Fault:
    """A changed operator: its line in the Verilog, before and after."""
    line: int
    before: str
    after: str


def plant(text: str, rng: random.Random) -> tuple[str, Fault]:
    """Verilog with one operator changed, chosen by ``rng``, and what was done: (str, :class:`Fault`)."""
    place = rng.choice(list(_OPERATION.finditer(text)))
    start, end = place.span("operator")
    changed = text[:start] + _FAULTS[place["operator"]] + text[end:]
    line = text.count("\n", 0, start)
    return changed, Fault(line + 1, text.splitlines()[line].strip(), changed.splitlines()[line].strip())


def planted(manifest: Manifest, rng: random.Random) -> tuple[Manifest, Fault]:
    """A copy of a design with a fault in it, below ``build/broken``: (Manifest, :class:`Fault`)."""
    text, fault = plant(manifest.verilog.read_text(), rng)
    folder = files.build() / "broken" / f"{manifest.top}-{files.key(text)[:12]}"
    files.write(folder / manifest.verilog.name, text)
    files.write(folder / "manifest.json", manifest.data.text())
    return Manifest.load(folder), fault


def parts(design: Design) -> tuple[str, ...]:
    """Units of a design that are judged: the core, or its converter where gradual subnormals leave no core."""
    if design.blocked and design.format.subnormals == "gradual":
        return "encode", "encode_lane"
    return ("core",)


def check(design: Design, seed: int = 1, *, fault: random.Random | None = None, keep: bool = False) -> dict[str, Any]:
    """Protocols, and random and corner data, on one design; plain data for a table and a file.

    Parameters
    ----------
    design : Design
        Small enough to be simulated as it is.
    seed : int
        Seed of data, pauses and values before reset.
    fault : random.Random, optional
        Plants a fault that it chooses, in a copy of the design.
    keep : bool
        Keep what was built for a design that passed.

    Returns
    -------
    dict
        ``verdict`` (``passed``, ``FAILED`` or ``not built``), ``compared``, ``mismatches``, ``problems``, ``asked``
        and ``seen`` (corners), ``sha256`` of the Verilog of each part if all were built and, with a fault, ``fault``.
    """
    from ..bench.catalogue import bench_outcome
    from ..simulate.simulation import Simulation
    from .device import Core
    from .products import random_products

    entry = {"verdict": "not built", "compared": 0, "mismatches": 0, "problems": [], "asked": 0, "seen": 0}
    outcomes, built, shas = [], [], []
    try:
        for unit in parts(design):
            manifest = emit(design, unit=None if unit == "core" else unit)
            shas.append(manifest.data.sha256)
            if fault:
                manifest, change = planted(manifest, fault)
                entry["fault"] = asdict(change)
            outcomes.append(bench_outcome(manifest, unit, seed, unit))
            built.append(Path(outcomes[-1].notes["log"]).parent)
            if unit == "core" and (outcomes[-1].passed or not fault):
                with Simulation(manifest, level="-O0", seed=seed, jobs=1) as simulation:
                    outcomes.append(random_products(Core(simulation), seed=seed))
                    built.append(simulation.library.parent)
            if fault and not outcomes[-1].passed:
                break
    except (EmitError, BuildError) as error:
        return entry | {"problems": [str(error)]}
    passed = all(outcome.passed for outcome in outcomes)
    if passed and not keep:
        for path in built:
            entries.remove(path)
    return entry | {
        "verdict": "passed" if passed else "FAILED", "sha256": shas,
        "compared": sum(outcome.comparison.compared for outcome in outcomes),
        "mismatches": sum(outcome.comparison.mismatches for outcome in outcomes),
        "problems": [f"{outcome.name}: {line}" for outcome in outcomes for line in outcome.problems[:3]],
        "asked": sum(len(outcome.corners) for outcome in outcomes),
        "seen": sum(len(outcome.corners) - len(outcome.missing) for outcome in outcomes)}
