"""The whole accelerator as one record, and its programs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hbfp.system import Accelerator

from . import banks, bus, control, dram, ports, queue, units
from .record import Record, made, record

STATE = record(
    control=control.STATE, units=units.STATE, ports=ports.STATE, banks=banks.STATE,
    queues=(queue.STATE, (queue.UNITS,)), fetch=bus.FETCH, reader=bus.READS, writer=bus.WRITES, dram=dram.STATE)


class Programs(NamedTuple):
    """What is stepped through.

    Attributes
    ----------
    instructions : ndarray of :data:`~golden.perf.accelerator.decode.INSTRUCTION`
        Of all contexts, one after the other.
    numbers : ndarray, (contexts, 8, instructions)
        Of each context, row u: where unit u's instructions stand, in their order.
    words : ndarray of :data:`~golden.perf.accelerator.programs.WORD`
        Of the vector unit.
    banks : ndarray
        Of the accesses of all contexts, :mod:`~golden.perf.accelerator.banks`.
    streams : ndarray, (contexts, streams)
        Where each of them begins.
    """
    instructions: NDArray[np.void]
    numbers: NDArray[np.int64]
    words: NDArray[np.void]
    banks: NDArray[np.uint8]
    streams: NDArray[np.int64]


def fresh(accelerator: Accelerator, latency: dict[str, int], dram_latency: int, bandwidth: int, priority: bool
          ) -> Record:
    """The state at reset."""
    return made(STATE, control=made(control.STATE, priority=priority), units=units.fresh(accelerator, latency),
                ports=made(ports.STATE, single=accelerator.single),
                banks=made(banks.STATE, count=accelerator.memory_banks),
                queues=queue.fresh(accelerator.queue), reader=made(bus.READS, most=accelerator.reads),
                writer=made(bus.WRITES, most=accelerator.reads),
                dram=dram.fresh(dram_latency, bandwidth, accelerator.beat))
