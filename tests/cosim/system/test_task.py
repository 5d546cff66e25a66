"""What firmware is to do: a block of addresses, and what it says of what lies there."""

import numpy as np
import pytest

from cosim.accelerator.host import room
from cosim.system.task import Task
from tests.runtime.machines import PROGRAM


@pytest.mark.parametrize("block, origin", [(0, 0x40000000), (1 << 20, 0)])
def test_the_block_says_where_all_is(block, origin):
    images, classes = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([1, 2, 9])
    task = Task(PROGRAM, images, classes, interrupts=False, runs=7)
    memory = task.laid(block, origin)
    file, size, image, known, scores, free, rest, interrupts, runs = memory[block:block + 36].view("<u4").tolist()
    assert (interrupts, runs) == (0, 7) and free % 4096 == 0 and rest == room(PROGRAM)[0]
    assert free - origin + rest == len(memory)
    parts = [memory[start - origin:][:length] for start, length in ((file, size), (image, 48), (known, 3))]
    assert parts[0].tobytes() == PROGRAM.to_bytes()
    assert np.array_equal(parts[1].view(np.float32), images.ravel()) and parts[2].tolist() == [1, 2, 9]
    memory[scores - origin:][:4] = np.array([2.5], "<f4").view(np.uint8)
    assert task.scores(memory, block).shape == () and task.scores(memory, block) == 2.5
    order = [origin + block, file, image, known, scores, free]
    assert order == sorted(order) and len(set(order)) == 6
