"""The unit vector and the vector unit in it, cycle by cycle; twin of ``vector.py`` and ``rtl/vector/unit.py``."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hbfp.isa.instructions import Opcode
from hbfp.system import Accelerator

from ...spec.vector import VectorUnit
from .decode import places
from .programs import LENGTH, PASS, READS, REDUCES, WRITES

State = NDArray[np.int64]
_V = places(Opcode.VECTOR)
_BEFORE, _BODY, _COUNT0, _COUNT1 = (_V[name] for name in ("before", "body", "count0", "count1"))
#: Places of the state: lanes, cycles from a beat to its result, levels of the tree of a reduction;
(LANES, RESULT, LEVELS,
 # whether an instruction is under way, and its last word has gone to the unit; where its body begins, words of that;
 # iterations after this one; the next word to be asked for, and whether there are no more;
 ACTIVE, FINISHING, BODY_AT, BODY, MORE, NEXT, OVER,
 # whether a word is there, which, and whether it is the last;
 THERE, HERE, LAST,
 # words of a row; whether a row is read, its next word, whether one is there;
 WIDTH, FEEDING, FED, CAME,
 # the unit: whether a pass issues, its next beat, beats, what it does; whether beats are still on their way; cycles
 # that a reduction still takes; beats on their way, and which is the last (bit n: n + 1 cycles ago).
 RUNNING, AT, BEATS, BY_STREAM, GIVES, TREE, DRAINING, REDUCING, FLIGHT, FINAL) = range(27)
SIZE = 27


def fresh(accelerator: Accelerator) -> State:
    """The state at reset."""
    unit = VectorUnit(lanes=accelerator.lanes, beats=accelerator.row_words, registers=accelerator.vector_rows)
    state = np.zeros(SIZE, np.int64)
    state[[LANES, RESULT, LEVELS, WIDTH]] = (accelerator.lanes, 4 + (unit.pipeline if unit.functions else 0),
                                            (accelerator.lanes - 1).bit_length(), accelerator.row_words)
    return state


@njit
def writes(s: State) -> bool:
    """Whether a word of V is written; it always may."""
    return s[GIVES] == 1 and (s[FLIGHT] >> s[RESULT] - 1) & 1 == 1


@njit
def _busy(s):
    return s[RUNNING] + s[DRAINING] + s[REDUCING] > 0


@njit
def reads(s: State, words: State) -> bool:
    """Whether a word of V is asked for."""
    return s[FEEDING] == 1 or (s[THERE] == 1 and not _busy(s) and words[s[HERE], READS] == 1)


@njit
def step(s: State, words: State, offered: bool, first: int, fields: State, granted: bool) -> tuple[bool, bool]:
    """A cycle: whether an instruction is taken, and whether one is done; ``granted``: V gives what is asked for."""
    busy = _busy(s)
    goes = s[THERE] == 1 and not busy
    done = s[FINISHING] == 1 and not busy
    starts = offered and s[ACTIVE] == 0

    # The row that is read; its first word is asked for as the pass goes to the unit.
    begins = goes and words[s[HERE], READS] == 1
    came = s[CAME]
    if begins:
        s[FED] = 0
    if begins or s[FEEDING]:
        s[FEEDING] = not (granted and s[FED] == s[WIDTH] - 1)
        s[FED] += granted
    s[CAME] = granted

    # The unit.
    ends = (s[FINAL] >> s[RESULT] - 1) & 1 == 1
    issue = s[RUNNING] == 1 and (came == 1 or s[BY_STREAM] == 0)
    final = issue and s[AT] == s[BEATS] - 1
    s[FLIGHT] = (s[FLIGHT] << 1 | issue) & ((1 << s[RESULT]) - 1)
    s[FINAL] = (s[FINAL] << 1 | final) & ((1 << s[RESULT]) - 1)
    if issue:
        s[AT] += 1
        if final:
            s[RUNNING], s[DRAINING] = 0, 1
    if s[REDUCING] > 0:
        s[REDUCING] -= 1
    if ends:
        s[DRAINING] = 0
        if s[TREE]:
            s[REDUCING] = s[LEVELS] + 1
    if goes:
        here = s[HERE]
        if words[here, PASS] > 0:
            s[RUNNING], s[AT] = 1, 0
            s[BEATS] = s[WIDTH] if words[here, PASS] == 1 else 1
            s[BY_STREAM], s[GIVES], s[TREE] = words[here, READS], words[here, WRITES], words[here, REDUCES]
        elif words[here, LENGTH] > 0:
            s[WIDTH] = (words[here, LENGTH] - 1) // s[LANES] + 1

    # Words of the program, one ahead.
    asks = s[ACTIVE] == 1 and s[OVER] == 0 and (s[THERE] == 0 or goes)
    if goes and s[LAST] == 1:
        s[FINISHING] = 1
    if asks:
        s[THERE], s[HERE] = 1, s[NEXT]
        s[NEXT] += 1
        s[LAST] = 0
        if s[NEXT] == s[BODY_AT] + s[BODY]:    # also the end of those before a body of none
            s[LAST] = s[OVER] = s[MORE] == 0
            s[MORE] -= 1
            s[NEXT] = s[BODY_AT]
    elif goes:
        s[THERE] = 0
    if done:
        s[ACTIVE], s[FINISHING] = 0, 0
    if starts:
        s[ACTIVE], s[OVER], s[NEXT] = 1, 0, first
        s[BODY_AT], s[BODY] = first + fields[_BEFORE], fields[_BODY]
        s[MORE] = fields[_COUNT0] * fields[_COUNT1] - 1 if fields[_BODY] else 0
    return starts, done
