"""The host's AXI4-Lite as the standard has it: strobes of any bytes, any kind of access, any address within a word."""

from cosim.accelerator.dispatched import REFUSED
from hbfp.isa.registers import BY_NAME, Access, Cause, registers

#: Writes of each register.
TURNS = 8
#: Bits of a register that are written as 0, since a one begins something.
HELD = {"policy": 1}


def mask(register):
    """Bits that it has."""
    fields = register.fields
    return sum((1 << each.width) - 1 << each.low for each in fields) if fields else (1 << 32) - 1


def check(held, system, pick):
    """Every byte of a register is what was written into it last, and nothing happens without its strobe.

    Parameters
    ----------
    held : Slave
        Behind a reset.
    system : Accelerator
    pick : random.Random

    Raises
    ------
    AssertionError
        If a register has another value.
    """
    def lite(write, name, *given):
        answers = (0, REFUSED) if write and name == "request_tag" else (0,)    # a ring that is on takes no other
        return held.lite(write, BY_NAME[name].address + pick.randrange(4), *given, kind=pick.randrange(8),
                         answers=answers)
    known = registers(system.contexts, system.stochastic, system.dispatched, system.dispatch_ring)
    values = {one.name: one.reset for one in known if one.access is Access.WRITE}
    for turn in range(TURNS):
        for name in pick.sample(list(values), len(values)):
            strobes = pick.randrange(16) if turn < TURNS - 1 else 15
            data = pick.choice((0, (1 << 32) - 1, pick.getrandbits(32))) & ~HELD.get(name, 0)
            bytes_ = sum(255 << 8 * each for each in range(4) if strobes >> each & 1)
            lite(1, name, data, strobes)
            values[name] = (values[name] & ~bytes_ | data & bytes_) & mask(BY_NAME[name])
        assert {name: lite(0, name) for name in values} == values
    held.reset()
    for strobes, status in ((14, 0), (15, 4)):    # a program of no instructions
        lite(1, "control", 1, strobes)
        held.idle(200)
        assert lite(0, "status") == status
    assert lite(0, "cause") == Cause.END
    for strobes, raised in ((14, 2), (1, 0)):
        lite(1, "interrupt_status", 3, strobes)
        assert lite(0, "interrupt_status") == raised
