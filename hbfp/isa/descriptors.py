"""Descriptors of a dispatcher's ring as data: what lies in DRAM for a request, and why one is refused.

docs/design/13-dispatched.md has them; hardware and models each compute the check word by themselves.
"""

from enum import IntEnum

#: Of a descriptor, which lies at the begin of a beat: words of 32 bits for input, output, tag, and the last.
BYTES = 16
#: Bits of the check in the last word; those above it are reserved, and 0.
CHECK = 16
#: The check is the exclusive or of this, of the descriptor's number, and of the halves of input, output and tag, the
#: lower one of each first, each turned to the left by so many bits: three times. No two of their bits are in the same
#: bits of the check, so that three that are turned round are always found.
SEED, TURNS = 0x4842, tuple((0, 1, 3 + half) for half in range(6))
#: Bits of the numbers of descriptors, which count on from reset and wrap.
NUMBER = 16
#: The register ``ring_size`` is the logarithm of how many a ring has: these at the least and at the most.
LEAST, MOST = 4, 15
#: Beats of the longest burst of them.
CHUNK = 16


class Refusal(IntEnum):
    """Why a descriptor was refused; the first that holds."""
    BUS = 1           # its read was answered with an error
    CHECK = 2         # its check is another
    RESERVED = 3      # reserved bits are not 0
    MISALIGNED = 4    # a place is not at a beat
    OUTSIDE = 5       # a place is not from ``ring_first`` to ``ring_last``
