"""The options ``--ring`` and ``--corrupt``: requests as descriptors in DRAM."""

from argparse import Namespace
from typing import Any

from hbfp.golden.perf.accelerator.colocate.descriptors import Reads
from hbfp.system import Accelerator
from hbfp.values import OptionError, number

from ..colocate.descriptors import Asked, drawn

#: The most of all requests that may be corrupt.
MOST = 0.9


def add_ring(group: Any) -> None:
    """Add the options."""
    group.add_argument("--ring", action="store_true", help="requests come as descriptors of a ring in DRAM, which the "
                       "dispatcher reads (--dispatch-ring)")
    group.add_argument("--corrupt", metavar="FRACTION", help=f"with --ring, of requests whose descriptor is corrupt, 0 "
                       f"to {MOST}: they are refused (default 0)")


def corrupt_from_args(args: Namespace) -> float | None:
    """The fraction of corrupt descriptors, None without a ring; OptionError if it is not valid."""
    if not args.ring:
        if args.corrupt is not None:
            raise OptionError("--corrupt must not be given without --ring")
        return None
    return 0.0 if args.corrupt is None else number("corrupt", args.corrupt, 0, MOST)


def ring_of(accelerator: Accelerator, count: int, corrupt: float | None, memory: tuple[int, int], seed: int
              ) -> Asked | None:
    """How so many requests come from a ring; None without one."""
    if corrupt is None:
        return None
    return drawn(Reads.of(accelerator, *memory), count, corrupt, seed)
