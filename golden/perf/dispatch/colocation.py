"""Training beside inference, against the same accelerator that trains alone, with the DRAM's bandwidth between them.

One step of training takes three products for each of the forward pass, and moves: weights for the forward and the
backward products; gradients out; the FP32 master copy in and out; every activation out and in. Inference has its
weights on the chip and moves inputs and outputs alone. The array is shared in time, the DRAM by bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hbfp.program import Product

#: Bytes of a gradient, and of a weight of the master copy.
GRADIENT, MASTER = 4, 4


@dataclass(frozen=True)
class Demand:
    """What a network asks of the DRAM at full speed, bytes a second."""
    training: float
    inference: float


def demand(workload: Sequence[Product], samples: int, element_bytes: float, seconds: float) -> Demand:
    """The demand of a network.

    Parameters
    ----------
    workload : list of hbfp.program.Product
    samples : int
        Of a batch.
    element_bytes : float
        Bytes of an element of weights and activations.
    seconds : float
        Time of a batch's forward pass; a step of training takes three times as long.

    Returns
    -------
    Demand
    """
    recurrent = len(workload) == 1 and workload[0].count > 1    # the same weights in every step
    weights = sum(each.terms * each.columns * (1 if recurrent else each.count) for each in workload)
    activations = samples * sum(each.rows * each.columns * each.count for each in workload)
    ends = samples * (workload[0].rows * workload[0].terms + workload[-1].rows * workload[-1].columns)
    step = weights * (2 * element_bytes + GRADIENT + 2 * MASTER) + 2 * activations * element_bytes
    return Demand(step / (3 * seconds), ends * element_bytes / seconds)


def share(demand: Demand, bandwidth: float, load: float, idle: float) -> float:
    """Speed of training beside inference over that of the same accelerator that trains alone.

    Parameters
    ----------
    demand : Demand
    bandwidth : float
        Of the DRAM, bytes a second.
    load : float
        Share of the time in which inference runs.
    idle : float
        Share of the time that the dispatcher leaves to training.
    """
    alone = min(1.0, bandwidth / demand.training)
    beside = min(idle, (bandwidth - load * demand.inference) / demand.training)
    return max(beside, 0.0) / alone
