"""The host of an accelerator with a dispatcher: policy, requests, completions, counters."""

from dataclasses import dataclass

from hbfp.golden.perf.dispatch.twin import Completion, Request
from hbfp.golden.spec.dispatch import Policy
from hbfp.isa.descriptors import Refusal
from hbfp.isa.registers import BY_NAME

from .device import BusError, Device
from .host import read, write

#: The response to a request that has no room.
REFUSED = 2


@dataclass(frozen=True)
class Answered:
    """A request that is done.

    Attributes
    ----------
    completion : Completion
    failed : bool
        Whether its batch ended with an error.
    refusal : Refusal or None
        Why its descriptor was refused.
    taken : int
        Cycle of the device behind that in which it was taken.
    """
    completion: Completion
    failed: bool
    refusal: Refusal | None = None
    taken: int = 0


def attach(device: Device, policy: Policy) -> None:
    """Set the policy, and give the contexts to the dispatcher."""
    for name in ("timeout", "patience"):
        write(device, name, int(getattr(policy, name)))
    values = {"attached": 1, **{name: int(value) for name, value in vars(policy).items()}}
    write(device, "policy", sum(values[each.name] << each.low for each in BY_NAME["policy"].fields))


def detach(device: Device) -> None:
    """Let nothing be started any more; what is under way goes on to its end."""
    write(device, "policy", 1 << 8)


def ask(device: Device, request: Request) -> bool:
    """Make a request; whether there was room for it.

    It arrives in the cycle of the answer, which is the last one of this call.
    """
    for name in ("input", "output"):
        write(device, f"request_{name}", getattr(request, name))
    return push(device, request.tag)


def push(device: Device, tag: int) -> bool:
    """Make a request of the places that were written last; whether there was room for it."""
    response = device.write(BY_NAME["request_tag"].address, tag)
    if response not in (0, REFUSED):
        raise BusError(f"Cycle {device.cycle}: a request must be answered with 0 or {REFUSED}, not {response}")
    return response == 0


def answered(device: Device) -> list[Answered]:
    """Take all completions that wait."""
    found = []
    while (state := read(device, "completion")) & 1:
        values = [read(device, f"completion_{name}") for name in Completion._fields]
        write(device, "completion", 1)
        refusal = Refusal(state >> 4) if state >> 4 else None
        found.append(Answered(Completion(*values), bool(state & 2), refusal, device.cycle))
    return found


def counter(device: Device, number: int) -> int:
    """A counter of the dispatcher."""
    write(device, "count_select", number)
    while not (high := read(device, "count_high")) >> 31:
        pass
    return read(device, "count_low") | (high & 0xFFFF) << 32
