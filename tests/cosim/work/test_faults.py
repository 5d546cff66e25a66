"""Changed operators in the logic of wide mantissas are seen by random products on a small core."""

import re

import pytest

from cosim.emit import emit
from cosim.manifest import Manifest
from cosim.simulate.simulation import Simulation
from cosim.work.device import Core
from cosim.work.products import random_products
from hbfp import files
from hbfp.design import Design
from hbfp.format import HBFPFormat

#: Operator -> what a fault makes of it.
FAULTS = {"+": "-", "-": "+", "&": "|", "|": "&", "==": "!=", ">": "<="}
OPERATOR = re.compile(r"(?<= )(\+|-|&|\||==|>)(?= )")
#: What the logic is known by in the text.
NAMES = re.compile(r"\b(s0_held\d|s0_row\d|s0_total\d|half|under_way|whole|base|wide)\b")
DESIGN = Design(format=HBFPFormat(mantissa=4, block=(1, 4), exponent=8), rows=2, cols=2, depth=8, wide=6)


def changed(text):
    """Every text with one operator changed in a line of that logic, and the line as it is then."""
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if line.startswith("  assign ") and NAMES.search(line):
            for found in OPERATOR.finditer(line):
                other = line[:found.start()] + FAULTS[found[0]] + line[found.end():]
                yield other.strip(), "".join([*lines[:number], other, *lines[number + 1:]])


@pytest.mark.cosim
@pytest.mark.slow
def test_changed_operators_are_seen(tmp_path):
    whole, survivors, count = emit(DESIGN), [], 0
    for count, (line, text) in enumerate(changed(whole.verilog.read_text()), 1):
        folder = tmp_path / str(count)
        files.write(folder / whole.verilog.name, text)
        files.write(folder / "manifest.json", whole.data.text())
        with Simulation(Manifest.load(folder), level="-O0", cache=tmp_path / "built") as simulation:
            outcome = random_products(Core(simulation))
        if outcome.passed:
            survivors.append(line)
    print(f"{count - len(survivors)} of {count} seen; not: {survivors}")
    assert count >= 12 and not survivors
