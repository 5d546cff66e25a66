"""The core, cycle by cycle: with nothing in its way it meets the formula that simulated cores meet.

Covers: golden/perf/accelerator/shared.py, golden/perf/accelerator/way_out.py.
"""

import numpy as np
import pytest

from golden.perf.accelerator import core, way_out
from golden.perf.cycles import Command, timeline
from hbfp.design import Design
from hbfp.format import HBFPFormat
from rtl.core.core import latencies
from tests.cases import sweep

DEPTH = 30
#: Name -> terms of a block, and options.
DESIGNS = {
    "plain": (8, {}), "long": (32, {}), "aligned": (8, {"accumulate": "aligned"}), "pipelined": (8, {"pipeline": 3}),
    "groups": (8, {"group": (2, 4)}), "fpga": (8, {"fabric": "fpga", "pipeline": 2}),
    "side-4": (8, {"side_lanes": 4}), "side-1": (8, {"side_lanes": 1}),
    "side-pipelined": (8, {"side_lanes": 2, "pipeline": 3}),
    "bank": (8, {"banks": 1}), "bank-side": (32, {"banks": 1, "side_lanes": 4}),
    "bank-pipelined": (16, {"banks": 1, "pipeline": 4, "side_lanes": 4}),
    "tile": (8, {"weight_tiles": 1}), "tile-groups": (8, {"weight_tiles": 1, "group": (2, 1)}),
    "tile-pipelined": (8, {"weight_tiles": 1, "pipeline": 7}),
    "share": (32, {"share": 4}), "share-side": (16, {"share": 2, "side_lanes": 2, "pipeline": 3}),
    "share-aligned": (32, {"share": 2, "accumulate": "aligned"}),
    "wide": (8, {"wide": 12}), "wide-bank": (16, {"wide": 9, "banks": 1, "pipeline": 2}),
    "wide-share": (32, {"wide": 12, "share": 4}), "wide-tile": (8, {"wide": 12, "weight_tiles": 1}),
    "sparse": (16, {"sparse": (2, 4)}), "sparse-long": (64, {"sparse": (2, 4), "share": 4})}


def run(design, commands):
    """First transfers of passes, and the end, counted from the first transfer."""
    state = core.fresh(design, latencies(design))
    out = state["out"]
    passes = [c.rows * c.beats for c in commands for _ in range(c.passes)]
    tops = np.cumsum([0, *passes])
    rows, results = int(tops[-1]), sum(c.rows for c in commands)
    weights, x, o, operands, next_command = len(passes) * design.rows, 0, 0, sum(c.vectors for c in commands), 0
    starts, cycle = [], 0
    while o < results:
        assert cycle < 100_000
        give_w = state["w"] = weights > 0 and core.w_ready(state)
        give_x = state["x"] = x < rows and core.x_ready(state)
        out["offered"] = operands > 0
        give_v = out["v"] = operands > 0 and way_out.v_ready(out)
        command = commands[next_command] if next_command < len(commands) and core.command_ready(state) else None
        if give_x and x in tops:
            starts.append(cycle)
        o += way_out.o_valid(out)
        state["commanded"], out["o"] = command is not None, True
        if command:
            state["command"] = (command.rows, command.passes, (1 << command.vectors) - 1, command.beats - 1,
                                command.sparse)
        core.step(state)
        weights -= give_w
        x += give_x
        operands -= give_v
        next_command += command is not None
        cycle += 1
    return starts, cycle


@pytest.mark.parametrize("name", sweep(2, DESIGNS))
def test_cycles_meet_the_formula(name):
    terms, options = DESIGNS[name]
    design = Design(format=HBFPFormat(mantissa=8, block=(1, terms)), rows=8, cols=8, depth=DEPTH, **options)
    rng = np.random.default_rng(len(name))
    runs = [[Command(DEPTH, passes)] * 3 for passes in (1, 5)] + [[Command(1, 9)] * 3]
    for vectors in range(3):
        for most in (4, DEPTH + 1):
            runs.append([Command(int(rng.integers(1, most)), int(rng.integers(1, 9)), vectors, int(rng.integers(
                1, 3 if design.wide else 2)), bool(design.takes_sparse and rng.integers(2))) for _ in range(6)])
    for commands in runs:
        starts, _, cycles = timeline(design, latencies(design), commands)
        assert run(design, commands) == (starts, cycles), commands
