"""What fits a board: block RAMs as they are put together; lines say what lacks, how much, and what would do.

Covers: hbfp/ecp5.py.
"""

import pytest

from gen.soc.boards import BOARDS, SYSTEM, Device, lacking, needed, rams
from tests.cosim.accelerator.built import ACCELERATOR

ULX3S = BOARDS["ulx3s"]


@pytest.mark.parametrize("shape, blocks", [
    ((512, 36, 36), 1), ((512, 37, 37), 2), ((513, 36, 36), 2), ((1024, 18, 18), 1), ((16384, 1, 1), 1),
    ((4096, 32, 32), 8), ((4096, 256, 32), 58), ((4096, 288, 36), 64), ((1024, 16, 8), 1),
    ((63, 400, 400), 0), ((64, 36, 36), 1)])
def test_blocks_of_a_memory(shape, blocks):
    assert rams(*shape) == blocks


def test_what_a_system_takes_at_least():
    memories = [{"words": 512, "width": 36, "granularity": 36, "count": 3},
                {"words": 16, "width": 512, "granularity": 64, "count": 9}]
    assert needed(memories, ACCELERATOR) == Device(SYSTEM.luts + 8 * 8 * 8, SYSTEM.rams + 3)


def test_what_lacks_is_said():
    assert lacking(ULX3S, "LFE5U-12F", Device(24288, 56)) is None
    assert lacking(ULX3S, "LFE5U-12F", Device(24288, 57)) == (
        "is too small for this accelerator: it needs 57 block RAMs at least, and it has 56; LFE5U-45F would do")
    assert lacking(ULX3S, "LFE5U-45F", Device(50000, 300)) == (
        "is too small for this accelerator: it needs 300 block RAMs at least, and it has 108 and 50000 LUTs or their "
        "flip-flops at least, and it has 43848; no FPGA of the ULX3S would do")
