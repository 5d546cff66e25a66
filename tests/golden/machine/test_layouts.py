"""Records of W in DRAM."""

import numpy as np

from golden.machine.layouts import unpack_records
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.system import Accelerator


def test_the_lowest_bits_of_a_record_count():
    """As in the Verilog, which has no more bits: a mantissa of 6 bits in 8, an exponent of 5 bits in 15."""
    system = Accelerator(core=Design(rows=8, format=HBFPFormat(mantissa=6, exponent=5, block=(1, 8))))
    words = np.random.default_rng(0).integers(0, 1 << 32, (20, system.record_beats * system.lanes), np.uint32)
    mantissas, exponents, invalid = unpack_records(system, words)
    assert mantissas.min() == -32 and mantissas.max() == 31 and exponents.min() == -16 and exponents.max() == 15
    high = np.tile(np.full(system.lanes, 0xC0C0C0C0, np.uint32), (20, system.record_beats))
    high[:, -system.lanes:] = 0x7FE07FE0
    for changed, kept in zip(unpack_records(system, words ^ high), (mantissas, exponents, invalid), strict=True):
        assert np.array_equal(changed, kept)
    assert np.array_equal(unpack_records(system, words ^ 0x80008000)[2], ~invalid)


def test_the_flag_of_a_record_is_no_part_of_an_exponent():
    """Records have exponents of 15 bits in every design, with the flag above them; also where the design has 16."""
    system = Accelerator(core=Design(rows=8, format=HBFPFormat(exponent=16, block=(1, 8))))
    words = np.random.default_rng(0).integers(0, 1 << 32, (20, system.record_beats * system.lanes), np.uint32)
    _, exponents, invalid = unpack_records(system, words)
    scales = words.reshape(20, -1).view(np.uint16)[:, -2 * system.lanes:][:, :system.lanes].astype(int)
    assert exponents.min() < -(1 << 13) and exponents.max() > 1 << 13 and 0 < invalid.sum() < invalid.size
    assert np.array_equal(exponents, (scales & 0x7FFF) - (scales & 0x4000) * 2)
    assert np.array_equal(invalid, scales >> 15 == 1)
