"""The machine of a simulation: pods, network, and how long its rounds and results take."""

from dataclasses import dataclass

from .interconnect import Interconnect


@dataclass(frozen=True)
class Timing:
    """Cycles of a machine as it is built, beside those in networks; the published rules have others.

    Attributes
    ----------
    product : int
        From the start of an operation's round to the first row of its result in a bank.
    result : int
        The same of a tile that a post-processor activates and sends to a bank of X, beside two networks.
    kept : int
        The same of one that stays with its post-processor, beside one network.
    round : int
        Least length of a round.
    """
    product: int
    result: int
    kept: int
    round: int


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
    chains : int
        Most operations of a tile, in ascending order along K, whose sums go on from one to the next; the sums of such
        chains are added by a post-processor, ascending, one a round. 0: in whatever order sums come. With chains all
        that post-processors read and give takes banks and routes.
    timing : Timing, optional
        Of a machine that is built.
    """
    pods: int
    rows: int
    columns: int
    interconnect: Interconnect
    adder: int = 4
    chains: int = 0
    timing: Timing | None = None

    @property
    def latency(self) -> int:
        """Cycles through a network."""
        return self.interconnect.latency(self.pods)

    def round(self, partition: int) -> int:
        """Cycles of a round whose longest operation has so many rows of X; the next weights take ``rows`` cycles."""
        return max(max(partition, self.rows) + 1, 2 * self.latency + 2, self.timing.round if self.timing else 0)

    @property
    def product_cycles(self) -> int:
        """From the start of an operation's round to the first row of its result in a bank."""
        return 2 * self.latency + (self.timing.product if self.timing else self.rows + self.columns)

    @property
    def sum_cycles(self) -> int:
        """From the start of an addition's round to the first row of the sum in a bank."""
        return 2 * self.latency + (self.timing.result if self.timing else self.adder)

    @property
    def kept_cycles(self) -> int:
        """The same where the result becomes no tile of X on the machine."""
        return self.latency + self.timing.kept if self.timing else self.sum_cycles
