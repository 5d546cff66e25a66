"""The machine of a simulation: pods, network, and how long its rounds and results take."""

from dataclasses import dataclass

from .interconnect import Interconnect


@dataclass(frozen=True)
class Machine:
    """Many pods behind a network.

    Attributes
    ----------
    pods : int
        Pods, banks of each kind, and post-processors; a power of two.
    rows, columns : int
        Of a pod's array.
    interconnect : Interconnect
    adder : int
        Cycles of an addition in a post-processor.
    """
    pods: int
    rows: int
    columns: int
    interconnect: Interconnect
    adder: int = 4

    @property
    def latency(self) -> int:
        """Cycles through a network."""
        return self.interconnect.latency(self.pods)

    def round(self, partition: int) -> int:
        """Cycles of a round whose longest operation has so many rows of X; the next weights take ``rows`` cycles."""
        return max(max(partition, self.rows) + 1, 2 * self.latency + 2)

    @property
    def product_cycles(self) -> int:
        """From the start of an operation's round to the first row of its result in a bank."""
        return 2 * self.latency + self.rows + self.columns

    @property
    def sum_cycles(self) -> int:
        """The same of an addition in a post-processor."""
        return 2 * self.latency + self.adder
