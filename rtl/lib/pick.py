"""One of several values by its number."""

from amaranth import Mux


def pick(values, number):
    """Value ``number`` of a power of two of them, by a tree of choices; ``number`` has as many bits as it takes."""
    values = list(values)
    for bit in number:
        if len(values) == 1:
            break
        values = [Mux(bit, high, low) for low, high in zip(values[::2], values[1::2], strict=True)]
    return values[0]
