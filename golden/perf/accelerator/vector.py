"""The unit vector and the vector unit in it, cycle by cycle; twin of ``vector.py`` and ``rtl/vector/unit.py``."""

from numba import njit

from hbfp.isa.instructions import Unit
from hbfp.system import Accelerator

from ...spec.vector import VectorUnit
from . import ports
from .programs import WORD
from .record import Record, made, record

UNIT = int(Unit.VECTOR)
_V_READ, _V_WRITE = ports.NUMBER["v_read"], ports.NUMBER["v_write"]

STATE = record(
    # Lanes, beats of a word, cycles from a beat to its result in a pass without a function and in one with, cycles of a
    # beat in the latter, levels of the tree of a reduction.
    "lanes turns plain function function_turns levels "
    # Where the instruction's body begins, words of that; iterations after this one; the next word to be asked for, the
    # one that is there.
    "body_at body more next here "
    # Beats and words of a row, and the next word of that which is read; beats of the word that are over, and of the one
    # that is gathered to be written.
    "length width fed place gathered "
    # The unit: the next beat of a pass, its beats, cycles from one to its result and to the next one, and those until
    # the next may go; cycles that a reduction still takes; beats on their way, and which is the last (bit n: n + 1
    # cycles ago).
    "at beats result every pause reducing flight final",
    # An instruction is under way, and its last word has gone to the unit; there are no more words; a word is there,
    # and is the last.
    "active finishing over there last "
    # A row is read; a beat of it is there.
    "feeding came "
    # The unit: a pass issues, and what it does; beats are still on their way.
    "running by_stream gives tree draining",
    word=WORD)    # the one that is there, as P gives it


def fresh(accelerator: Accelerator, latency: dict[str, int]) -> Record:
    """The state at reset."""
    unit = VectorUnit.of(accelerator)
    return made(STATE, lanes=unit.lanes, turns=accelerator.turns, plain=unit.plain_cycles - 1,
                function=unit.pass_cycles + unit.function_turns - 2, function_turns=unit.function_turns,
                levels=unit.reduce_cycles - 1, result=1, length=unit.beats, width=accelerator.row_words)


@njit
def _busy(s):
    return s.running or s.draining or s.reducing > 0


@njit
def _leaves(s):
    """Whether a beat leaves the unit."""
    return s.flight >> s.result - 1 & 1 == 1


@njit
def _over(s):
    """Whether the unit takes the last beat of the word that is there, or none is."""
    return not s.came or (s.place == s.turns - 1 and s.running and s.pause == 0)


@njit
def _written(s):
    """Whether the beat that leaves the unit ends a word."""
    return s.gathered == s.turns - 1 or s.final >> s.result - 1 & 1 == 1


@njit
def ask(m: Record) -> None:
    """What it asks for in this cycle."""
    s = m.units.vector
    if s.gives and _leaves(s) and _written(s):
        ports.ask(m.ports, _V_WRITE, UNIT)
    if (s.feeding and _over(s)) or (s.there and not _busy(s) and s.word.reads):
        ports.ask(m.ports, _V_READ, UNIT)


@njit
def step(m: Record) -> None:
    """The end of a cycle."""
    s, q = m.units.vector, m.queues[UNIT]
    busy = _busy(s)
    goes = s.there and not busy
    q.done = s.finishing and not busy
    q.takes = q.begins = q.ready and not s.active
    came = s.came
    _feed(s, goes and s.word.reads, ports.granted(m.ports, _V_READ, UNIT))
    _compute(s, came)
    if goes:
        _begin(s)
    _follow(s, goes)
    if q.done:
        s.active = s.finishing = False
    if q.takes:
        first, f = q.instruction.first, q.instruction.fields
        s.active, s.over, s.next = True, False, first
        s.body_at, s.body = first + f.before, f.body
        s.more = f.count0 * f.count1 - 1 if f.body else 0


@njit
def _feed(s, begins, granted):
    """The row that is read; its first word is asked for as the pass goes to the unit."""
    if begins:
        s.fed = 0
    if begins or s.feeding:
        s.feeding = not (granted and s.fed == s.width - 1)
        s.fed += granted
    if granted or begins or _over(s):
        s.came, s.place = granted, 0
    else:
        s.place += s.running and s.pause == 0


@njit
def _compute(s, came):
    """The unit; ``came``: a beat of the row is there."""
    if s.gives and _leaves(s):
        s.gathered = 0 if _written(s) else s.gathered + 1
    ends = s.final >> s.result - 1 & 1 == 1
    issue = s.running and s.pause == 0 and (came or not s.by_stream)
    final = issue and s.at == s.beats - 1
    s.flight = (s.flight << 1 | issue) & ((1 << s.result) - 1)
    s.final = (s.final << 1 | final) & ((1 << s.result) - 1)
    if s.pause > 0:
        s.pause -= 1
    if issue:
        s.at += 1
        s.pause = s.every - 1
        if final:
            s.running, s.draining = False, True
    if s.reducing > 0:
        s.reducing -= 1
    if ends:
        s.draining = False
        if s.tree:
            s.reducing = s.levels + 1


@njit
def _begin(s):
    """The word goes to the unit."""
    if s.word.passes > 0:
        s.running, s.at = True, 0
        s.beats = s.length if s.word.passes == 1 else 1
        s.by_stream, s.gives, s.tree = s.word.reads, s.word.writes, s.word.reduces
        s.result = s.function if s.word.functions else s.plain
        s.every = s.function_turns if s.word.functions else 1
    elif s.word.length > 0:
        s.length = (s.word.length - 1) // s.lanes + 1
        s.width = (s.length - 1) // s.turns + 1


@njit
def _follow(s, goes):
    """Words of the program, one ahead; ``goes``: the one that is there does."""
    asks = s.active and not s.over and (not s.there or goes)
    if goes and s.last:
        s.finishing = True
    if asks:
        s.there, s.here = True, s.next
        s.next += 1
        s.last = False
        if s.next == s.body_at + s.body:    # also the end of those before a body of none
            s.last = s.over = s.more == 0
            s.more -= 1
            s.next = s.body_at
    elif goes:
        s.there = False
