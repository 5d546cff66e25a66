"""The request dispatcher, as data: sizes, the fields of its streams, its policies and its counters."""

from dataclasses import dataclass, fields
from enum import IntEnum

from hbfp.checks import check_range

DEPTH_RANGE, ADDRESS_RANGE, TAG_RANGE, TIME_RANGE, COUNTER_RANGE = (2, 4096), (8, 64), (1, 64), (5, 48), (4, 64)
STAMPED_RANGE = 0, 1
#: A quantum of training is paid for in parts of 1/16 of the time that passes.
SHARE_WHOLE = 16


@dataclass(frozen=True, kw_only=True)
class DispatchUnit:
    """Sizes of a dispatcher.

    Parameters
    ----------
    depth : int
        Requests that it holds, waiting, running or not yet reported: a power of two, 2 to 4096; also the largest batch.
    address : int
        Bits of an input's or an output's address, 8 to 64.
    tag : int
        Bits that come out with a request's completion as they went in, 1 to 64.
    time : int
        Bits of a time in cycles, 5 to 48. Times wrap; a latency, a batch or a quantum of 2^time cycles or more counts
        as 2^time - 1, and sets an error.
    counter : int
        Bits of a counter, 4 to 64; counters saturate.
    stamped : int
        1: somebody else may say from when on a request counts, of one that was there before the dispatcher was told.

    Raises
    ------
    ValueError
        If a value is out of range.
    """
    depth: int = 256
    address: int = 32
    tag: int = 16
    time: int = 32
    counter: int = 48
    stamped: int = 0

    def __post_init__(self):
        check_range("Depth", self.depth, *DEPTH_RANGE, " requests")
        if self.depth & (self.depth - 1):
            raise ValueError(f"Depth must be a power of two, not {self.depth}")
        check_range("Address width", self.address, *ADDRESS_RANGE, " bits")
        check_range("Tag width", self.tag, *TAG_RANGE, " bits")
        check_range("Time width", self.time, *TIME_RANGE, " bits")
        check_range("Counter width", self.counter, *COUNTER_RANGE, " bits")
        check_range("Stamped", self.stamped, *STAMPED_RANGE)

    @property
    def parameters(self) -> dict[str, int]:
        """Name and value of each."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def batch_bits(self) -> int:
        """Bits of a number of requests, 0 to ``depth``."""
        return self.depth.bit_length()

    @property
    def counters(self) -> int:
        """Words of the counter memory: the scalars, the histogram of latencies, the batches by fill."""
        return self.fill(self.depth) + 1

    @property
    def longest(self) -> int:
        """The longest time in cycles that is told from longer ones."""
        return 2**self.time - 1

    def check_policy(self, policy: "Policy") -> None:
        """ValueError if a time of the policy does not fit."""
        for name in ("timeout", "patience"):
            check_range(f"Policy's {name}", getattr(policy, name), 0, self.longest, " cycles")

    def histogram(self, size: int) -> int:
        """Address of the count of latencies of ``size`` bits: 2^(size-1) to 2^size - 1 cycles, 0 for none."""
        return len(Counter) + size

    def fill(self, count: int) -> int:
        """Address of the count of batches of ``count`` requests, 1 to ``depth``."""
        return self.histogram(self.time) + count


class Counter(IntEnum):
    """Addresses of the counters that stand alone; the others follow them."""
    COMPLETED = 0     # requests
    LATENCY = 1       # cycles from arrival to completion, summed
    LONGEST = 2       # the largest latency, cycles
    INFERENCE = 3     # cycles in which a batch ran
    TRAINING = 4      # cycles in which the training program ran
    IDLE = 5          # all other cycles up to the last start
    QUANTA = 6        # times that the training program yielded


class Cause(IntEnum):
    """Bits of ``error``."""
    OVERDUE = 0       # the training program did not yield within ``patience`` cycles
    UNASKED = 1       # something was done that had not been started
    POLICY = 2        # the policy's batch is not 1 to ``depth``, or its share above 16: nothing is started
    TIME = 3          # a latency, a batch, a quantum or the wait for a start took 2^time cycles or more


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What is started when the executor is free; may change at any time.

    Parameters
    ----------
    inference, training : bool
        Whether batches, whether training is started at all.
    priority : bool
        A batch that is due goes first; otherwise batches and training take turns.
    batch : int
        Requests that make a batch due at once, and the most that it takes.
    timeout : number
        Cycles after which the oldest waiting request makes a batch due, however few there are; 0 is greedy. A model
        may have another unit of time.
    share : int
        Training runs in ``share`` sixteenths of the time at most, 0 to 16: every quantum is paid for before the next.
    patience : int
        Cycles after which a quantum that has not yielded is an error; 0 is for ever.
    closes : bool
        A batch that becomes due by its timeout while a quantum runs has the requests that wait then; those that come
        later, up to its start, are in the next.
    """
    inference: bool = True
    training: bool = True
    priority: bool = True
    batch: int = 14
    timeout: float = 0
    share: int = SHARE_WHOLE
    patience: int = 0
    closes: bool = False


def policies(batch: int, timeout: float) -> dict[str, Policy]:
    """The policies by name, for a batch size and a timeout in cycles."""
    return {
        "priority": Policy(batch=batch, timeout=timeout),
        "closing": Policy(batch=batch, timeout=timeout, closes=True),
        "greedy": Policy(batch=batch, timeout=0),
        "alternate": Policy(batch=batch, timeout=timeout, priority=False),
        "inference": Policy(batch=batch, timeout=timeout, training=False),
        "training": Policy(batch=batch, timeout=timeout, inference=False),
        "limited": Policy(batch=batch, timeout=timeout, share=SHARE_WHOLE // 4),
    }
