"""What memories of a design became."""

from synth.measure.whole import memories


def test_what_memories_became():
    assert memories("mapping memory serial.dut.accumulator0.bank1.memory via $__PDPW16KD_\n"
                    "mapping memory serial.dut.weights$248.bank3.memory via $__TRELLIS_DPR16X4_\n"
                    "using FF mapping for memory serial.dut.tiny.memory\n") == {
        "accumulator0.bank1.memory": "block", "weights$248.bank3.memory": "distributed", "tiny.memory": "flip-flops"}
