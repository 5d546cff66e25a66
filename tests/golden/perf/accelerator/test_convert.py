"""Where the columns of squares go that are turned one behind the other; cycles are in ``tests/cosim/accelerator``."""

from golden.perf.accelerator import convert
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.system import Accelerator


def test_the_last_column_of_a_square_leaves_when_the_next_is_complete():
    """Squares of blocks longer than a side follow each other at once; each column is of its own square's place."""
    design = Design(rows=4, cols=4, format=HBFPFormat(mantissa=6, block=(8, 8)))
    state, places, left = convert.fresh(Accelerator(core=design), {}), (100, 205), []
    state["turned"] = state["later"] = True
    for cycle in range(3 * design.rows + 2):
        square, row = divmod(cycle, design.rows)
        state["later"] = square < len(places)
        if state["later"]:
            state["later_ends"], state["later_into"] = row == design.rows - 1, places[square]
        convert._transpose(state)
        if state["leaves"]:
            left.append(int(state["leaving_into"]))
    assert left == [place + column for place in places for column in range(design.rows)]
