"""Words as instructions: the decoder that all parts share, against one by the page that shares nothing with it."""

from random import Random

import pytest

from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import WORD, IllegalInstruction, decode
from hbfp.isa.legal import check
from hbfp.system import Accelerator
from tests.cosim.accelerator.built import DISPATCHED
from tests.rtl.accelerator.test_issue import DRAWING, SYSTEM, WIDE, turned

from .plain_decode import FIELDS, plain

SPARSE = Accelerator(core=Design(rows=8, sparse=(2, 4), format=HBFPFormat(mantissa=4, block=(1, 16))))
TALL = Accelerator(core=Design(rows=16, cols=8, format=HBFPFormat(block=(1, 16))))
FLAT = Accelerator(core=Design(rows=8, cols=16, format=HBFPFormat(block=(1, 16))))
SYSTEMS = {"plain": SYSTEM, "drawing": DRAWING, "wide": WIDE, "sparse": SPARSE, "tall": TALL, "flat": FLAT,
           "dispatched": DISPATCHED}


def found(word, system):
    """As ``plain``, by the instruction set."""
    try:
        one = decode(word)
        check(one, system)
    except IllegalInstruction:
        return None
    return one.opcode.name, dict(one.values), [(int(wait.unit), wait.count) for wait in one.waits]


@pytest.mark.parametrize("name", SYSTEMS)
def test_both_decoders_say_the_same(name):
    system, pick, groups = SYSTEMS[name], Random(name), {}
    for word in turned(system, 2, 2):
        groups.setdefault(word & 15, []).append(word)
    words = [word ^ (pick.random() < 0.3) << pick.randrange(WORD) for group in groups.values()
             for word in pick.sample(group, min(len(group), 1000))]
    seen = set()
    for word in [*words, *(pick.getrandbits(WORD) for _ in range(1000))]:
        expected = plain(word, system)
        assert found(word, system) == expected, hex(word)
        seen.add((word & 15, expected is not None))
    assert seen == {(opcode, good) for opcode in FIELDS for good in (False, True)} | {
        (opcode, False) for opcode in range(16) if opcode not in FIELDS}
