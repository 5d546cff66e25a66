"""Matrices whose columns lie in order are turned on their way to X wherever X has room, and come once if all fit.

Covers: golden/lower/products/matrix.py.
"""

import pytest
import torch

from golden.lower.lowering import lower
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Opcode
from hbfp.system import Accelerator
from tests.golden.lower.running import checked
from tests.golden.lower.test_lowering import Of

#: 64 words of X are 16 rows of 4, as many as are turned at a time.
MACHINE = Accelerator(core=Design(rows=16, depth=32, format=HBFPFormat(block=(1, 32))), x_words=64, w_words=64,
                      v_words=256)


@pytest.mark.parametrize(("terms", "times"), [(64, 1), (100, 2)])
def test_columns_that_fill_x_to_the_last_word_are_turned(terms, times):
    """A row of all terms fills X, or one of two portions of a weight that streams: then for each column tile anew."""
    model = Of(lambda x: x.mT @ torch.linspace(-1, 1, terms * 20).reshape(terms, 20)).eval()
    program = lower(model, (torch.randn(terms, 40, generator=torch.Generator().manual_seed(1)),), MACHINE)
    words = sum(each["words"] * each["rows"] for each in checked(program).program.instructions
                if each.opcode == Opcode.CONVERT and each["columns"] and not each["to_w"])
    assert words == times * terms * 3                      # of 40 columns
