"""Rows of an operand on their way to the core, cycle by cycle: what the units multiply and weights have in common."""

from .record import Record, part, record

STATE = record(
    # Rows that are still to be issued.
    "left",
    # An instruction is under way; a row is on its way to the core, and is the instruction's last; one is done.
    "active there final done")


@part
def free(s: Record, ready: bool) -> bool:
    """Whether a row may be issued; ``ready``: the core takes a row."""
    return s.active and (not s.there or ready)


@part
def step(s: Record, q: Record, ready: bool, waits: bool, more: bool) -> bool:
    """The end of a cycle; whether a row is issued.

    Parameters
    ----------
    s, q : Record
        The rows, and the queue of the unit.
    ready, waits, more
        Whether the core takes a row; whether none may be issued; whether the instruction has rows beyond those left.
    """
    q.done = s.done
    s.done = s.there and ready and s.final
    issue = free(s, ready) and not waits
    last = issue and s.left == 1 and not more
    if issue:
        s.there, s.final = True, last
        s.left -= 1
    elif ready:
        s.there = False
    if last:
        s.active = False
    return issue


@part
def begin(s: Record, count: int) -> None:
    """The rows of another instruction."""
    s.active, s.left = True, count
