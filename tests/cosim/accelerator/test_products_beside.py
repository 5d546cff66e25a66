"""A product beside the layers behind it on the Verilated accelerator: bits of PyTorch, cycles of the model."""

from dataclasses import replace

import pytest

from cosim.accelerator import training as runs
from cosim.emit import emit_accelerator
from golden.lower.training.beside import BESIDE
from hbfp.isa.instructions import Opcode

from .built import ACCELERATOR, LEVEL
from .test_training import ATTENDS, file, lowered

__all__ = ["file"]


@pytest.mark.cosim
@pytest.mark.slow
def test_products_beside_the_vector_unit_on_verilog(file):
    """Linear layers and attention, forward, gx and gw."""
    file.write_text(ATTENDS)
    large = replace(ACCELERATOR, v_words=BESIDE, vector_rows=8)
    made, step = lowered(file, large)
    program = step.lowered.program
    beside = [layer for layer in program.layers if layer.name.startswith("gw") and any(
        each.opcode == Opcode.VECTOR for each in program.instructions[layer.first:layer.stop])]
    assert beside
    found = runs.on_verilog(emit_accelerator(large), step, made.batches(), 3, every=True, level=LEVEL)
    assert found.total.mismatches == 0 and found.total.compared and found.late == []
