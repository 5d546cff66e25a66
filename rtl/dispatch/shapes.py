"""Layouts of the dispatcher's streams and of its policy."""

from hbfp.golden.spec.dispatch import SHARE_WHOLE

from ..lib.layout import StructLayout


def request_layout(unit):
    """A request for inference: where its input is, where its output goes, and a tag of the host's."""
    return StructLayout({"input": unit.address, "output": unit.address, "tag": unit.tag})


def start_layout(unit):
    """What the executor is to do: a quantum of training, or a batch of ``count`` requests, which follow one by one."""
    return StructLayout({"training": 1, "count": unit.batch_bits})


def completion_layout(unit):
    """A request that is done, and when it arrived, its batch was started and was done."""
    return StructLayout({"tag": unit.tag, "arrived": unit.time, "started": unit.time, "finished": unit.time})


def policy_layout(unit):
    """:class:`golden.spec.dispatch.Policy`, field by field."""
    return StructLayout({"inference": 1, "training": 1, "priority": 1, "batch": unit.batch_bits,
                         "timeout": unit.time, "share": SHARE_WHOLE.bit_length(), "patience": unit.time, "closes": 1})


def tally_layout(unit):
    """One change of a counter: add ``amount``, or keep the larger of the two if ``largest``."""
    return StructLayout({"address": range(unit.counters), "largest": 1, "amount": unit.time})


def clock_bits(unit):
    """Bits of the clock inside: differences are told up to twice the longest time that ports show."""
    return unit.time + 1


def queue_layout(unit):
    """What is kept of a request until it runs."""
    return StructLayout({**request_layout(unit).members, "arrived": clock_bits(unit)})


def arrival_layout(unit):
    """What is kept of a request until it is reported."""
    return StructLayout({"tag": unit.tag, "arrived": clock_bits(unit)})
