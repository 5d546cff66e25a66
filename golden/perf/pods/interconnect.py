"""Networks between pods and banks: their latency, and which routes a round can have at once.

A *butterfly-k* has k = 2^e copies of a banyan of log2 N stages, behind e stages that choose a copy and before e that
join them. In one copy the way from a port to another is the only one: after stage s it has the label of the source's
low bits and the target's top s bits, ``target >> (n - s) << (n - s) | source & (2^(n - s) - 1)``, and two ways meet
where their labels do. What one source sends to several targets in a round shares its links (multicast).

A *crossbar* and the *Benes* network (with its copy stages) have room for all routes that a round can ask for; they
differ in latency.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Interconnect:
    """A kind of network; ``copies`` is 0 where all routes of a round are free."""
    name: str
    copies: int

    def latency(self, ports: int) -> int:
        """Cycles from a port to another; ``ports`` is a power of two."""
        stages = ports.bit_length() - 1
        if self.copies:
            return max(stages + 2 * (self.copies.bit_length() - 1), 1)
        return max(4 * stages - 1, 1) if self.name == "benes" else 1

    def links(self, ports: int) -> tuple[int, int, int]:
        """Shape of a round's links: copies, stages whose links can be shared, ports."""
        return self.copies, max(ports.bit_length() - 2, 0), ports


def parse(text: str) -> Interconnect:
    """The network of a name: ``butterfly-K``, ``crossbar`` or ``benes``.

    Raises
    ------
    ValueError
        If it names none; ``K`` is a power of two up to 16.
    """
    if text in ("crossbar", "benes"):
        return Interconnect(text, 0)
    found = re.fullmatch(r"butterfly-(1|2|4|8|16)", text)
    if not found:
        raise ValueError("must be butterfly-K (K 1, 2, 4, 8 or 16), crossbar or benes")
    return Interconnect(text, int(found[1]))
