"""The unit vector and the vector unit in it, cycle by cycle; twin of ``vector.py`` and ``rtl/vector/``."""

import numpy as np

from hbfp.isa.instructions import Unit
from hbfp.system import Accelerator

from ...spec.vector import REGISTERS_RANGE, SCALARS, VectorUnit
from . import banks, ports
from .programs import WORD
from .record import Record, made, part, record

UNIT = int(Unit.VECTOR)
_V_READ, _V_WRITE, _P_READ = (ports.NUMBER[name] for name in ("v_read", "v_write", "p_read"))
#: Cycles that :data:`STATE` looks ahead: more than a beat takes.
_AHEAD = 128
#: Rows that may wait behind the one that is written.
_ROWS = 2

STATE = record(
    # Lanes, beats of a word, cycles from a beat to its result in a pass without a function, more in one with, cycles of
    # a beat in the latter and in one that reduces, and of the tree of a reduction.
    "lanes turns plain delay function_turns reduce_turns levels "
    # Where the instruction's body begins, words of that; iterations after this one; the next word to be asked for, the
    # one that is there; where words pass a register, the one in front of it.
    "body_at body more next here before "
    # Beats and words of a pass, and beats of a step on scalars; the next word of what is read; beats of the word that
    # are over, and of the one that is gathered to be written; rows that wait behind the one that is written.
    "length width once fed place gathered queued "
    # The unit: the cycle; the next beat of a pass, its beats, cycles from one to its result and to the next one; the
    # cycle of the last event, and those from which on a beat without and with a function and one that is added up may
    # go, and a pass that reduces may follow.
    "now at beats result every until plain_from function_from sum_from totals_from "
    # The register and the scalar that the pass writes, from 1; copies of the unit's registers, and whether these have
    # one port; words of them that a beat reads before the last one, and how many it has.
    "fills puts copies single early fetched",
    # An instruction is under way, and its last word has gone to the unit; there are no more words; a word is there,
    # and is the last; it goes to the unit.
    "active finishing over there last goes "
    # Units have registers: one is in front of the register, and is the last; a row is asked for, after its pass.
    "registered comes comes_last asks "
    # A row is read; a beat of it is there; a row is written.
    "feeding came writing "
    # The unit: a pass issues, and what it does.
    "running by_stream by_register gives tree functions",
    word=WORD,    # the one that is there, as P gives it
    # By the cycle: 1 where a beat leaves, 2 where a row's last one does; 1 where a register's even beat is written, 2
    # where an odd one is. From when on passes may read registers, and read or write scalars.
    leaves=(np.int64, (_AHEAD,)), kept=(np.int64, (_AHEAD,)),
    registers=(np.int64, (REGISTERS_RANGE[1],)), scalars=(np.int64, (SCALARS,)))


def fresh(accelerator: Accelerator, latency: dict[str, int]) -> Record:
    """The state at reset."""
    unit = VectorUnit.of(accelerator)
    return made(STATE, lanes=unit.lanes, turns=accelerator.turns, plain=unit.plain_cycles - 1,
                delay=unit.function_delay, function_turns=unit.function_turns, reduce_turns=unit.reduce_turns,
                levels=unit.reduce_cycles - 1, until=-1, length=unit.beats, width=accelerator.row_words, once=1,
                single=unit.single, copies=unit.register_copies, registered=accelerator.registered)


@part
def _busy(s):
    return s.running or s.now <= s.until


@part
def _paced(s):
    """Whether a pass issues, and its next beat may go."""
    if not s.running or s.fetched < s.early or s.now < (s.function_from if s.functions else s.plain_from):
        return False
    if s.tree and s.now < s.sum_from:
        return False
    return not s.by_register or _readable(s)


@part
def _readable(s):
    """Whether the bank of registers that the next beat reads is not written."""
    return not s.single or s.kept[s.now % _AHEAD] != 1 + s.at % 2


@part
def _issues(s):
    return _paced(s) and (s.came or not s.by_stream)


@part
def _over(s):
    """Whether the unit takes the last beat of the word that is there, or none is."""
    return not s.came or (s.place == s.turns - 1 and s.by_stream and _paced(s))


@part
def _leaves(s):
    """Not 0 where a beat leaves the unit, 2 where a row's last one does."""
    return s.leaves[s.now % _AHEAD]


@part
def _written(s):
    """Whether the beat that leaves the unit ends a word."""
    return s.gathered == s.turns - 1 or _leaves(s) == 2


@part
def _waits(s):
    """Whether the pass that is there has to wait for what others in flight write."""
    w = s.word
    totals = w.reduces or w.passes == 2
    if s.running:
        if not (_issues(s) and s.at == s.beats - 1):
            return True
        if (totals and s.tree) or 1 << s.puts >> 1 & w.scalars:
            return True
        if 1 << s.fills >> 1 & w.registers and s.beats <= s.result:
            return True
    if totals and s.now < s.totals_from - (s.delay if w.functions else 0):
        return True
    for n in range(len(s.scalars)):
        if w.scalars >> n & 1 and s.now < s.scalars[n]:
            return True
    for n in range(len(s.registers)):
        if w.registers >> n & 1 and s.now < s.registers[n]:
            return True
    return w.writes and s.queued == _ROWS


@part
def _moves(s):
    """Whether the word in front of the unit, or of the register there, goes on."""
    return s.comes and (not s.there or s.goes) if s.registered else s.goes


@part
def ask(m: Record) -> None:
    """What it asks for in this cycle."""
    s = m.units.vector
    s.goes = s.there and not (_waits(s) if s.word.passes > 0 else _busy(s))
    waits = s.comes if s.registered else s.there
    if s.active and not s.over and (not waits or _moves(s)):
        ports.ask(m.ports, _P_READ, UNIT, 0)
    if _leaves(s) and _written(s):
        ports.ask(m.ports, _V_WRITE, UNIT, m.banks.next[banks.WRITES])
    if (s.feeding and _over(s)) or (s.asks if s.registered else s.goes and s.word.reads):
        ports.ask(m.ports, _V_READ, UNIT, m.banks.next[banks.READS])


@part
def step(m: Record) -> None:
    """The end of a cycle."""
    s, q = m.units.vector, m.queues[UNIT]
    goes = s.goes
    q.done = s.finishing and not _busy(s)
    q.takes = q.begins = q.ready and not s.active
    issue, moves = _issues(s), s.by_stream and _paced(s)
    _write(s, goes and s.word.writes)
    _feed(s, goes and s.word.reads, moves, ports.granted(m.ports, _V_READ, UNIT))
    s.asks = goes and s.word.reads
    if issue:
        _issue(s)
    elif s.running and s.fetched < s.early:
        s.fetched += _readable(s)
    if goes:
        _begin(s)
    _follow(s, goes, ports.granted(m.ports, _P_READ, UNIT))
    s.kept[s.now % _AHEAD] = 0
    s.now += 1
    if q.done:
        s.active = s.finishing = False
    if q.takes:
        first, f = q.instruction.first, q.instruction.fields
        s.active, s.over, s.next = True, False, first
        s.body_at, s.body = first + f.before, f.body
        s.more = f.count0 * f.count1 - 1 if f.body else 0


@part
def _write(s, begins):
    """Rows that are written, one after the other; ``begins``: the unit takes a pass that gives one."""
    starts = s.queued > 0 and not s.writing
    s.queued += begins - starts
    leaves = _leaves(s)
    if leaves:
        s.gathered = 0 if _written(s) else s.gathered + 1
    s.writing = (starts or s.writing) and leaves != 2
    s.leaves[s.now % _AHEAD] = 0


@part
def _feed(s, anew, moves, granted):
    """The row that is read; its first word is asked for as the pass goes to the unit, ``anew``, or a cycle later."""
    over = _over(s) or anew
    begins = s.asks if s.registered else anew
    if begins:
        s.fed = 0
    if begins or s.feeding:
        s.feeding = not (granted and s.fed == s.width - 1)
        s.fed += granted
    if granted or begins or over:
        s.came, s.place = granted, 0
    else:
        s.place += moves


@part
def _issue(s):
    """The unit takes a beat."""
    now, final = s.now, s.at == s.beats - 1
    s.at, s.fetched = s.at + 1, 0
    s.until = max(s.until, now + s.result)
    s.function_from = now + s.every
    s.plain_from = now + 1 + (s.delay if s.functions else 0)
    if s.tree:
        s.sum_from = now + s.reduce_turns
    if s.gives:
        s.leaves[(now + s.result) % _AHEAD] = 1 + final
    if s.fills:
        s.kept[(now + s.result) % _AHEAD] = 1 + (s.at - 1) % 2
    if not final:
        return
    s.running = False
    if s.fills:
        s.registers[s.fills - 1] = now + s.result + 1 - s.beats
    if s.puts:
        s.scalars[s.puts - 1] = now + s.result + (s.levels if s.tree else -1)
    if s.tree:
        s.until = max(s.until, now + s.result + s.levels + 1)
        s.totals_from = now + 1 + s.levels + (s.delay if s.functions else 0)


@part
def _begin(s):
    """The word goes to the unit."""
    w = s.word
    if w.passes > 0:
        s.running, s.at = True, 0
        s.early = w.fetched - 1 if s.copies == 1 and w.fetched > 0 else 0
        s.beats = s.length if w.passes == 1 else s.once
        s.by_stream, s.gives, s.tree, s.functions = w.reads, w.writes, w.reduces, w.functions
        s.by_register = w.registers != 0
        s.fills, s.puts = w.fills, w.puts
        s.result = s.plain + (s.delay if w.functions else 0)
        s.every = s.function_turns if w.functions else 1
    elif w.length > 0:
        s.length = w.rows if w.rows > 0 else (w.length - 1) // s.lanes + 1
        s.once = max(w.rows, 1)
        s.width = (s.length - 1) // s.turns + 1


@part
def _follow(s, goes, granted):
    """Words of the program, one ahead; ``goes``: the one that is there does; ``granted``: P is."""
    asks = granted
    if goes and s.last:
        s.finishing = True
    moves = _moves(s)
    if moves and s.registered:
        s.there, s.here, s.last, s.comes = True, s.before, s.comes_last, False
    elif goes:
        s.there = False
    if not asks:
        return
    here, last = s.next, False
    s.next += 1
    if s.next == s.body_at + s.body:    # also the end of those before a body of none
        last = s.over = s.more == 0
        s.more -= 1
        s.next = s.body_at
    if s.registered:
        s.comes, s.before, s.comes_last = True, here, last
    else:
        s.there, s.here, s.last = True, here, last
