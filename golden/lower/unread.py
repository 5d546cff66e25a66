"""Stores that nothing needs: what layers give each other, where all that read it find it in V."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

from hbfp.isa.instructions import Opcode
from hbfp.program import Program

from .schedule import Emission


def without_unread(program: Program, emissions: Sequence[tuple[int, Emission]]
                   ) -> tuple[list[tuple[int, Emission]], set[str]]:
    """Instructions without stores to DRAM that none of them reads, and that belong to no input or output.

    Parameters
    ----------
    program : Program
    emissions : sequence of (int, Emission)
        As of :func:`~golden.lower.reordered.reordered`.

    Returns
    -------
    (list of (int, Emission), set of str)
        Those that stay, and the names of tensors that are not in DRAM then.
    """
    read = [span for _, each in emissions for span in each.reads if span.memory == "DRAM"]
    needed = _Bytes([*((span.start, span.stop) for span in read),
                     *(_reach(program, name) for name, tensor in program.tensors.items() if tensor.role != "inner")])
    stay, unread = list[tuple[int, Emission]](), list[tuple[int, int]]()
    for number, each in emissions:
        written = [(span.start, span.stop) for span in each.writes]
        if each.opcode == Opcode.STORE and not any(needed.has(*span) for span in written):
            unread += written
        else:
            stay.append((number, each))
    gone = _Bytes(unread)
    return stay, {name for name, tensor in program.tensors.items() if tensor.role == "inner"
                  and gone.has(*_reach(program, name))}


def _reach(program, name):
    """The first byte of a tensor, and the one behind its last."""
    tensor = program.tensors[name]
    return tensor.address, tensor.address + tensor.bytes(program.accelerator)


class _Bytes:
    """Stretches of DRAM."""

    def __init__(self, stretches: Iterable[tuple[int, int]]) -> None:
        both = sorted(stretches)
        self.starts, self.ends = [start for start, _ in both], list(accumulate((stop for _, stop in both), max))

    def has(self, start: int, stop: int) -> bool:
        """Whether any of these bytes is of one of them."""
        place = bisect_left(self.starts, stop)
        return place > 0 and self.ends[place - 1] > start
