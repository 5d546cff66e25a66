"""Banks of memories of one port: which one each access of a program is of, in the order in which its unit makes them.

When an access is made does not matter for where: the n-th word that a unit reads or writes follows from its
instructions alone. So the banks are known before the program is stepped through, and the next one is at a counter of
those that were granted. Where the model has an access at hand (convert, load, store) its unit says the bank instead.
"""

import numpy as np
from numpy.typing import NDArray

from hbfp.isa.instructions import VECTOR_INPUTS, VECTOR_OUTPUTS, Opcode
from hbfp.program import Program

from ...machine.loops import nest
from .record import Record, part, record

#: Whose accesses are followed: rows of X; operands and results of the core; words that the vector unit reads, writes.
MULTIPLY, OPERANDS, RESULTS, READS, WRITES = range(5)
_COUNT = WRITES + 1
#: A row of zeros, which is not read.
OUTSIDE = 255
_EACH = (np.int64, (_COUNT,))

#: Banks of V and X, 0 where memories have two ports; accesses of each context so far; the bank of the next access, and
#: of the one after it.
STATE = record("count", done=(np.int64, (2, _COUNT)), next=_EACH, after=_EACH)


@part
def look(s: Record, banks: NDArray[np.uint8], first: NDArray[np.int64], owner: int) -> None:
    """The begin of a cycle: where the next accesses of the program that has the machine are."""
    for stream in range(_COUNT):
        place = first[owner, stream] + s.done[owner, stream]
        s.next[stream], s.after[stream] = banks[place], banks[place + 1]


@part
def count(s: Record, owner: int, row: bool, operand: bool, result: bool, read: bool, written: bool) -> None:
    """The end of a cycle: which accesses were made."""
    done = s.done[owner]
    done[MULTIPLY] += row
    done[OPERANDS] += operand
    done[RESULTS] += result
    done[READS] += read
    done[WRITES] += written


def of(program: Program, words: NDArray[np.void], firsts: NDArray[np.int64]
       ) -> tuple[list[NDArray[np.uint8]], NDArray[np.int64]]:
    """The accesses of a program.

    Parameters
    ----------
    program : Program
    words, firsts
        As of :func:`~golden.perf.accelerator.programs.words`.

    Returns
    -------
    (list of ndarray, ndarray (instructions + 1, streams))
        The banks of each stream, two zeros behind the last; how many accesses the instructions before each make.
    """
    banks, before = program.accelerator.memory_banks, np.zeros((len(program.instructions) + 1, _COUNT), np.int64)
    if not banks:
        return [np.zeros(2, np.uint8)] * _COUNT, before
    streams: list[list[NDArray[np.uint8]]] = [[] for _ in range(_COUNT)]

    def put(stream, addresses, outside=None):
        found = (addresses & banks - 1).astype(np.uint8)
        if outside is not None:
            found[outside] = OUTSIDE
        streams[stream].append(found.ravel())
        before[number + 1, stream] += found.size
    system = program.accelerator
    length, each_word = system.row_words * system.lanes, system.x_line
    for number, each in enumerate(program.instructions):
        if each.opcode == Opcode.MULTIPLY:
            address, outside = _rows(each)
            put(MULTIPLY, address // each_word, outside)
        elif each.opcode == Opcode.DRAIN:
            word = np.arange(each["columns"]) >> each["wide"]    # of wide results, two columns' have one
            counts, strides = _loops(each, "rows0 rows1", "row0 row1")
            rows = nest(counts, strides, each["base"])
            put(RESULTS, np.add.outer(word * each["column"], rows.ravel()))
            bases = [each[f"{name}_base"] for name in ("scale", "bias") if each[name]]
            put(OPERANDS, np.add.outer(word, np.array(bases, np.int64)))
        elif each.opcode == Opcode.VECTOR:
            parts = words[firsts[number]:][:each["before"] + each["body"]]
            for part, times in ((parts[:each["before"]], (1, 1)),
                                (parts[each["before"]:], (each["count0"], each["count1"]))):
                read, write, length = _passes(each, part, times, length, program.accelerator.lanes)
                put(READS, read)
                put(WRITES, write)
    return [np.concatenate([*stream, np.zeros(2, np.uint8)]) for stream in streams], before.cumsum(axis=0)


def joined(streams: list[list[NDArray[np.uint8]]]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The streams of all contexts one behind the other, and where each begins: (contexts, streams)."""
    every = [stream for each in streams for stream in each]
    ends = np.cumsum([len(stream) for stream in every])
    return np.concatenate(every), np.concatenate([[0], ends[:-1]]).reshape(len(streams), _COUNT)


def _loops(each, counts, strides):
    return [each[name] for name in counts.split()], [each[name] for name in strides.split()]


def _rows(each):
    """Addresses of the rows of X, in their order, and which are outside of their bounds; None where there are none."""
    names = "rows0 rows1 passes0 passes1 passes2 columns"
    counts, strides = _loops(each, names, "row0 row1 pass0 pass1 pass2")
    counts = (1 + each["wide_x"], *counts)    # digits of a row
    address = nest(counts, (each["low"], *strides, 0), each["base"])
    if not each["bounded"]:
        return address, None
    x = nest(counts, (0, each["x_row"], 0, 0, each["x_pass"], 0, 0), each["x"])
    y = nest(counts, (0, 0, each["y_row"], 0, 0, each["y_pass"], 0), each["y"])
    return address, (x < 0) | (x >= each["width"]) | (y < 0) | (y >= each["height"])


def _passes(each, words, counts, length, lanes):
    """Addresses that a part of a program reads and writes, iteration by iteration, and the length that it leaves."""
    rows: tuple[list, list] = [], []
    for word in words:
        length = int(word["rows"]) * lanes or int(word["length"]) or length
        if word["passes"] == 1:
            for stream, name in zip(rows, ("reads", "writes"), strict=True):
                if word[name]:
                    stream.append(-(-length // lanes))
    found = []
    for stream, slots in zip(rows, (VECTOR_INPUTS, VECTOR_OUTPUTS), strict=True):
        passes = [_row(each, slots, number, size, counts) for number, size in enumerate(stream)]
        found.append(np.concatenate(passes, axis=-1) if passes else np.zeros(0, np.int64))
    return *found, length


def _row(each, slots, number, size, counts):
    """Addresses of the row of one pass in each iteration: (outer, inner, words)."""
    slot, ahead = slots[min(number, len(slots) - 1)], 0
    if each["taps"] and slots is VECTOR_INPUTS:
        slot, line = slots[0], each["i1_inner"] or 256
        ahead = number % line * each["i1_step"] + number // line * each["i1_stride0"]
    word, inner = np.arange(size), each[f"{slot}_inner"] or 256
    row = each[f"{slot}_base"] + ahead + word % inner + word // inner * each[f"{slot}_step"]
    return row + nest(counts, (each[f"{slot}_stride0"], each[f"{slot}_stride1"]))[..., None]
