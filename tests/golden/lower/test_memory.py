"""Tensors in DRAM as strided views."""

import re

import numpy as np
import pytest

from golden.lower.errors import LoweringError
from golden.lower.memory import Dram
from hbfp.design import Design
from hbfp.system import Accelerator


@pytest.fixture
def dram():
    return Dram(Accelerator(core=Design(rows=8)))


def test_rows_are_whole_words(dram):
    value = dram.empty((2, 3, 10))
    assert value.dims() == [(2, 48), (3, 16), (10, 1)]
    assert dram.empty((2, 20, 3, 4), [0, 2, 3, 1]).dims() == [(2, 288), (20, 1), (3, 96), (4, 24)]
    assert dram.end == 96 + 2 * 288


def test_constants_are_filled_up_with_zeros(dram):
    x = np.arange(1, 13, dtype=np.float32).reshape(2, 3, 2)
    value = dram.constant(x, [0, 2, 1])
    data = np.frombuffer(dram.regions[0].data, np.float32).reshape(4, 8)
    assert value.dims() == [(2, 16), (3, 1), (2, 8)]
    np.testing.assert_array_equal(data[:, :3], x.transpose(0, 2, 1).reshape(4, 3))
    assert not data[:, 3:].any()


@pytest.mark.parametrize(("view", "inner", "whole"), [
    (lambda x: x, 2, True), (lambda x: x[:, 1], 1, True), (lambda x: x[..., :8], 2, True),
    (lambda x: x[..., 8:], 2, False),
    (lambda x: x[..., :5], 2, False), (lambda x: x[..., 1:], 2, False), (lambda x: x.transpose(1, 2), 1, True),
    (lambda x: x.transpose(1, 2), 2, False), (lambda x: x[:1, :, None].expand(1, 3, 4, 10), 3, True)])
def test_whole_words(dram, view, inner, whole):
    value = dram.empty((2, 3, 10))
    assert value.view(view).whole_words(inner, 8) == whole


def test_words_of_rows(dram):
    value = dram.empty((3, 20))
    part = value.words(1, 2, 1, 8)
    assert (part.shape, part.address - value.address) == ((3, 4), 16)
    assert part.whole_words(1, 8)


def test_addresses_end(dram):
    """All of 4 GiB can be given out, and no word more."""
    dram.home(1 << 27, 8)
    line = ("it needs space beside what others have, and addresses reach 4 GiB of DRAM; a smaller batch or model would "
            "do")
    with pytest.raises(LoweringError, match=f"^{re.escape(line)}$"):
        dram.home(1, 1)
