"""What a host does: a program and its data into DRAM, registers, the doorbell, and what came of it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hbfp.golden.perf.accelerator.times import Times, from_events
from hbfp.isa.instructions import Unit
from hbfp.isa.registers import BY_NAME, IDENTITY, Cause
from hbfp.program import Program
from hbfp.system import Share

from .device import BusError, Device

#: The base register must be a multiple of it.
PAGE = 4096
#: Cycles without progress after which the accelerator's own watch-dog stops a program, if nothing else is asked for.
WATCHDOG = 100_000
#: Bytes of DRAM that no region of a program covers.
UNDEFINED = 0xCD
#: Cycles at a time; a program that does nothing visible for that long, watch-dog or not, hangs.
_STRETCH = 1_000_000
_DONE, _ERROR = 2, 4


@dataclass(frozen=True)
class Result:
    """What came of a program that ran.

    Attributes
    ----------
    cycles : int
        In which the program had the machine, from the doorbell to the end, as the accelerator counts them; 0 on the
        golden machine.
    cause : Cause or None
        The cause of its error, if it had one.
    error_pc : int
        Number of the instruction at fault.
    counters : dict
        Name of the register -> value: completed, busy and waiting for each unit, words loaded and stored.
    times : Times or None
        When each instruction ran, where the top has the ports for that and the program ended well.
    """
    cycles: int
    cause: Cause | None
    error_pc: int
    counters: dict[str, int]
    times: Times | None


def room(program: Program) -> tuple[int, int]:
    """Bytes of DRAM that a program needs with its instructions, and its base register."""
    base = -(-len(program.instructions) * 64 // PAGE) * PAGE
    return base + program.limit, base


def place(program: Program, memory: np.ndarray) -> None:
    """Put a program and what it finds into a DRAM of at least :func:`room` bytes; the rest is made undefined."""
    memory[:] = UNDEFINED
    put(program, memory)


def put(program: Program, memory: np.ndarray) -> None:
    """Put a program and what it finds into a DRAM, as :func:`place`, and leave the rest as it is."""
    replace_program(program, memory, room(program)[1])


def replace_program(program: Program, memory: np.ndarray, base: int, kept: range = range(0)) -> None:
    """:func:`put` a program into a DRAM whose data begin at ``base``, and leave its bytes ``kept`` as they are."""
    words = program.words()
    memory[:len(words)] = np.frombuffer(words, np.uint8)
    for region in program.memory:
        start = base + region.address
        if region.address not in kept:
            memory[start:start + len(region.data)] = np.frombuffer(region.data, np.uint8)


def _address(name, context):
    """The address of a register, or of that of a context."""
    return BY_NAME[f"{name}_{context}" if context else name].address


def read(device: Device, name: str, context: int = 0) -> int:
    """The value of a register by its name."""
    return device.read(_address(name, context))


def write(device: Device, name: str, value: int, context: int = 0) -> None:
    """Write a register by its name."""
    device.write(_address(name, context), value)


def halves(**addresses: int) -> dict[str, int]:
    """Registers, name -> value, of addresses of 64 bits, which have a register for each half."""
    return {f"{name}_{half}": value for name, address in addresses.items()
            for half, value in (("low", address % (1 << 32)), ("high", address >> 32))}


def settings(program: Program, *, address: int = 0, base: int | None = None, watchdog: int = WATCHDOG,
             share: Share | None = None, first: int = 0) -> dict[str, int]:
    """Registers, name -> value, for a program that is in DRAM, with its instructions at ``address``, whole pages.

    Its data begin at ``base``, usually behind the instructions; both count from ``first``, where the DRAM begins.
    ``share`` is that of its context, if not everything.
    """
    base = address + room(program)[1] if base is None else base
    return {**halves(program=first + address, base=first + base), "limit": program.limit,
            "instructions": len(program.instructions), "watchdog": watchdog, "interrupt_status": 3,
            "interrupt_enable": 3, **program.registers(), **(share.registers() if share else {})}


def prepare(device: Device, program: Program, context: int = 0, **options: Any) -> None:
    """Set a context's registers for a program, with ``options`` of :func:`settings`.

    Raises
    ------
    BusError
        If the device is no accelerator, or does not answer.
    """
    found = read(device, "id")
    if found != IDENTITY:
        raise BusError(f"Register id must be 0x{IDENTITY:08X}, not 0x{found:08X}")
    for name, value in settings(program, first=device.first, **options).items():
        write(device, name, value, context)


def ring(device: Device, program: Program, context: int = 0, **options: Any) -> None:
    """:func:`prepare` a context, and ring its doorbell."""
    prepare(device, program, context, **options)
    device.record()
    write(device, "control", 1, context)


def finish(device: Device) -> None:
    """Go on until the interrupt.

    Raises
    ------
    BusError
        If it does not come though nothing goes on any more, or a rule of AXI is broken.
    """
    seen = None
    while not device.run(_STRETCH):
        now = (len(device.events()), device.counts)
        if now == seen:
            raise BusError(f"Cycle {device.cycle}: no interrupt, and nothing has gone on for {_STRETCH} cycles")
        seen = now


def execute(device: Device, program: Program, context: int = 0, **options: Any) -> Result:
    """Run a program that is in the device's memory (:func:`place`) to its end, well or not.

    Parameters
    ----------
    device : Device
    program : Program
    context : int
        The context that runs it.
    options
        As for :func:`settings`.

    Returns
    -------
    Result

    Raises
    ------
    BusError
        If it does not end, or a rule of AXI is broken.
    TimesError
        If units did not do what the program has for them.
    """
    ring(device, program, context, **options)
    finish(device)
    return result(device, program, context)


def result(device: Device, program: Program, context: int = 0) -> Result:
    """What came of the program that has ended in a context, whose interrupt is cleared; raises as :func:`execute`."""
    status, cycles, cause, pc = (read(device, name, context) for name in ("status", "cycles", "cause", "error_pc"))
    counters = {f"{unit.name.lower()}_{what}": read(device, f"{unit.name.lower()}_{what}", context)
                for unit in Unit for what in ("completed", "busy", "waiting")}
    counters |= {name: read(device, name, context) for name in ("words_loaded", "words_stored")}
    write(device, "interrupt_status", 3, context)
    if status not in (_DONE, _ERROR):
        raise BusError(f"Cycle {device.cycle}: status must be {_DONE} or {_ERROR} after an interrupt, not {status}")
    failed = status == _ERROR
    times = from_events(program, device.events(), context) if device.traced and not failed else None
    return Result(cycles, Cause(cause) if failed else None, pc, counters, times)
