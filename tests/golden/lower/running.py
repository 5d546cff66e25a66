"""A lowered network on the golden machine."""

import numpy as np

from golden.machine.machine import Machine


def checked(lowered):
    """Run it in an order that its waits guarantee, and hold every tensor to PyTorch's bits; the machine."""
    device = Machine(lowered.program, races=True)
    device.run()
    for name, values in lowered.expected.items():
        np.testing.assert_array_equal(device.get(name).view(np.uint32),
                                      np.ascontiguousarray(values, np.float32).view(np.uint32), name)
    return device
