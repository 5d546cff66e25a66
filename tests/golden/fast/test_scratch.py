"""Memory that is lent anew belongs to no array, and arrays are those of numpy.empty otherwise."""

import gc
import threading

import numpy as np
import pytest

from golden.fast import scratch

#: Sides and types of arrays below, at and above the sizes that are kept, and without elements.
SHAPES = [((0, 3), np.float32), ((7,), np.int32), ((1 << 15,), np.float32), ((3, 50001), np.float32),
          ((2, 3, 1 << 16), np.int32), ((1 << 22,), np.float32), (((1 << 22) + 1,), np.float32)]


@pytest.mark.parametrize("shape, dtype", SHAPES)
def test_as_numpy(shape, dtype):
    x, y = scratch.empty(shape, dtype), np.empty(shape, dtype)
    assert (x.shape, x.dtype, x.strides) == (y.shape, y.dtype, y.strides)
    assert x.flags.c_contiguous and x.flags.writeable and x.flags.aligned
    x[...] = 5
    assert x.sum() == 5 * x.size


def test_no_two_arrays_share_memory():
    held = []
    for i in range(200):
        x = scratch.empty((40000 + i,))
        x[...] = i
        held.append((i, x[7:].reshape(1, -1)))             # a view keeps the memory
        del x
        if i % 3 == 0:
            held.pop(len(held) // 2)
    for i, view in held:
        assert (view == i).all()


@pytest.mark.parametrize("power, most", [(20, 16), (23, 4)])
def test_freed_memory_is_lent_again_and_no_more_than_a_limit(power, most):
    gc.collect()
    free = scratch._FREE[power]
    x = scratch.empty((1 << power - 2,))
    at = x.ctypes.data
    view = x[1:]
    del x
    assert scratch.empty((1 << power - 2,)).ctypes.data != at
    del view
    assert scratch.empty((1 << power - 2,)).ctypes.data == at
    many = [scratch.empty((1 << power - 2,)) for _ in range(50)]
    del many
    assert len(free) == free.maxlen == most


def test_threads():
    wrong = []

    def work(number):
        for _ in range(200):
            x = scratch.empty((50000,))
            x[...] = number
            if not (x == number).all():
                wrong.append(number)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
