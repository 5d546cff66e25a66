"""What programs cost that tests lower: instructions, cycles and DRAM, in a table beside this file.

How much is taken at a time changes no bit, so that no comparison with PyTorch sees it. A test with the fixture
``costs`` fails where its programs together have another number of instructions, take other cycles, reach other bytes
of DRAM or bring other bytes along than the table says. Who changes the lowering writes the table anew, and sees there
what became faster and what slower::

    python -m tests.golden.lower.costs
"""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from golden.perf.accelerator.model import times
from hbfp import files
from hbfp.program import Program

TABLE = Path(__file__).with_name("costs.json")
#: Of the core, as a small one has them, and cycles of the DRAM, which gives as much in a cycle as the bus takes.
LATENCY = {"interval": 4, "array": 2, "accumulate": 2, "drain": 6, "row": 1, "vector": 1, "apart": 6, "release": 2,
           "encode": 1}
DRAM = 32
#: More cycles than any of them takes.
LIMIT = 1 << 22
#: The plugin of pytest in whose table tests leave what they cost, where it is written anew.
WRITTEN = "costs written"


def cost(programs: list[Program]) -> list[int]:
    """Instructions and cycles of programs, the bytes of DRAM that they reach, and those that are there before."""
    return [sum(len(each.instructions) for each in programs),
            sum(times(each, LATENCY, DRAM, each.accelerator.beat).cycles for each in programs),
            sum(each.limit for each in programs), sum(len(part.data) for each in programs for part in each.memory)]


def table() -> dict[str, list[int]]:
    """The same by test."""
    return json.loads(TABLE.read_text())


def tests() -> list[str]:
    """Files with the fixture."""
    found = sorted(Path(__file__).parent.rglob("test_*.py"))
    return [str(each.relative_to(files.ROOT)) for each in found if 'usefixtures("costs")' in each.read_text()]


def main() -> int:
    """Run the tests, and write the table; the exit status is that of pytest."""
    written = SimpleNamespace(__name__=WRITTEN, table={})
    status = pytest.main(["-q", "-m", "not slow", "-p", "no:xdist", *tests()], [written])
    if not status:
        rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(written.table.items()))
        TABLE.write_text(f"{{\n{rows}\n}}\n")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
