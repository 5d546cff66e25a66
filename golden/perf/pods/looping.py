"""Settings of a Benes network for a permutation, by the looping algorithm.

The network has 2 log2 N - 1 columns, which work on the bits 0, 1, ..., log2 N - 1, ..., 1, 0 of a label. The first
sends one of each pair of inputs into either half of the labels, those with bit 0 clear and those with it set; the last
brings them together. Two inputs of a switch, and two outputs of one, need different halves: going from one to its
partner at the input, from there to the partner at the output and so on closes loops of even length, so that halves can
be given in turn. Each half is a Benes network of its own.
"""

from collections.abc import Iterator, Sequence


def halves(targets: Sequence[int]) -> list[int]:
    """The half for each input, 0 or 1; ``targets`` is a permutation of an even number of labels."""
    sources = [0] * len(targets)
    for source, target in enumerate(targets):
        sources[target] = source
    half = [-1] * len(targets)
    for first in range(len(targets)):
        source = first
        while half[source] < 0:
            half[source], half[source ^ 1] = 0, 1
            source = sources[targets[source ^ 1] ^ 1]
    return half


def switches(targets: Sequence[int], level: int = 0, low: int = 0) -> Iterator[tuple[int, int, int]]:
    """Column, label of the output, and the bit of the label at which it takes its payload: for each switch's output.

    Parameters
    ----------
    targets : sequence of int
        For each input the output, a permutation; for a part of a network, bits ``level`` and up of their labels.
    level, low : int
        The part whose labels have ``low`` as their lowest ``level`` bits; by default the whole.
    """
    bits = len(targets).bit_length() - 1
    if bits == 1:
        for source, target in enumerate(targets):
            yield level, target << level | low, source
        return
    last = level + 2 * bits - 2    # the column that undoes what column ``level`` did
    half = halves(targets)
    inside: tuple[list[int], list[int]] = ([0] * (len(targets) // 2), [0] * (len(targets) // 2))
    for source, target in enumerate(targets):
        inside[half[source]][source >> 1] = target >> 1
        yield level, (source & ~1 | half[source]) << level | low, source & 1
        yield last, target << level | low, half[source]
    for side, part in enumerate(inside):
        yield from switches(part, level + 1, low | side << level)
