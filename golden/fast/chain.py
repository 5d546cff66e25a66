"""Compiled products of layers behind each other, all of one model of a job before those of the next."""

import ctypes

from . import kernels, stack

_ADDRESS, _LONG = ctypes.c_void_p, ctypes.c_int64
#: Kinds of sums over rows: from the first row on, and as torch has them, which adds whole groups of so many columns in
#: another order than what is left.
ASCENDING, WIDE = 1, 32


class Link(ctypes.Structure):
    """``struct Link`` of chain.h."""
    _fields_ = [*((name, _ADDRESS) for name in "a b bias mask y".split()),
                *((name, _LONG) for name in
                  "a_step am ak b_step bk bn bias_step m k n rectified dots sums".split()),
                *((name, _ADDRESS) for name in "fa fb high_a high_b terms flush".split())]

    def in_formats(self, formats: stack.Formats) -> None:
        """Have the formats of each model, which the caller keeps."""
        self.fa, self.fb, self.high_a, self.high_b, self.terms, self.flush = formats.addresses(0)


def run(links: int, first: int, last: int, models: int, work: float) -> None:
    """Run some of the links at an address for all models; ``work`` as of :func:`golden.fast.kernels.split`."""
    at = links + first * ctypes.sizeof(Link)
    kernels.split(models, work, lambda low, high: kernels.loaded().hbfp_chain(at, last - first, low, high))
