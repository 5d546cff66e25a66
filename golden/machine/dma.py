"""LOAD and STORE: transfers between DRAM and the memories."""

import numpy as np

from hbfp.isa.instructions import Instruction, Memory
from hbfp.system import Accelerator

from .dram import Dram
from .layouts import unpack_records
from .loops import nest
from .memories import WRAP, Memories

#: Elements of V are numbered modulo this.
ELEMENTS = 1 << 22


def load(accelerator: Accelerator, memories: Memories, dram: Dram, instruction: Instruction,
         offset: int) -> None:
    """Execute a LOAD, from byte ``offset`` of DRAM on to V, W or P; raises as ``Machine.run``."""
    if instruction["elements"]:
        _load_runs(accelerator, memories, dram, instruction, offset)
    elif instruction["memory"] == Memory.V:
        words = _beats(accelerator, dram, instruction, offset, 1)
        target = memories.v.writes(_targets(instruction, 1).ravel())
        memories.v_data[target] = words.reshape(-1, accelerator.lanes)
    elif instruction["memory"] == Memory.P:
        words = _beats(accelerator, dram, instruction, offset, 1)
        each = accelerator.lanes // 2    # instructions of a word, which addresses count; what is beyond stays there
        first = np.minimum(_targets(instruction, 1).reshape(-1, 1) % WRAP * each, WRAP - each)
        target = memories.p.writes(first + np.arange(each))
        memories.p_data[target] = np.ascontiguousarray(words).reshape(-1, accelerator.lanes).view(np.uint64)
    else:
        _load_records(accelerator, memories, dram, instruction, offset)


def store(accelerator: Accelerator, memories: Memories, dram: Dram, instruction: Instruction,
          offset: int) -> None:
    """Execute a STORE, from V to byte ``offset`` of DRAM on; raises as ``Machine.run``."""
    counts, lanes = _counts(instruction), accelerator.lanes
    size = instruction["run"] if instruction["elements"] else lanes
    step = instruction["buffer0"] if instruction["elements"] else 1
    source = memories.v.reads(_targets(instruction, step), slice(0, size))
    dram0 = instruction["dram0"] if instruction["elements"] else accelerator.beat
    addresses = nest(counts, (dram0, instruction["dram1"], instruction["dram2"]), offset)
    words = dram.words_at(addresses, 4 * size, 4 if instruction["elements"] else accelerator.beat)
    dram.data[dram.writes(words)] = memories.v_data[source, :size]


def _counts(instruction):
    return tuple(instruction[f"count{loop}"] for loop in range(3))


def _targets(instruction, step):
    """Addresses in the memory, (count2, count1, count0)."""
    return nest(_counts(instruction), (step, instruction["buffer1"], instruction["buffer2"]), instruction["base"])


def _beats(accelerator, dram, instruction, offset, each):
    """Numbers of pieces of ``each`` beats that follow each other, (count2, count1, count0, 4-byte words)."""
    size = each * accelerator.beat
    addresses = nest(_counts(instruction), (size, instruction["dram1"], instruction["dram2"]), offset)
    return dram.data[dram.reads(dram.words_at(addresses, size, accelerator.beat))]


def _load_runs(accelerator, memories, dram, instruction, offset):
    """Runs of numbers to elements of V; the other lanes keep their values."""
    counts, run, lanes = _counts(instruction), instruction["run"], accelerator.lanes
    strides = tuple(instruction[f"dram{loop}"] for loop in range(3))
    words = dram.data[dram.reads(dram.words_at(nest(counts, strides, offset), 4 * run, 4))]
    elements = (_targets(instruction, instruction["buffer0"])[..., None] + np.arange(run)) % ELEMENTS
    memories.v.write_parts(elements // lanes, elements % lanes)
    memories.v_data[elements // lanes, elements % lanes] = words


def _load_records(accelerator, memories, dram, instruction, offset):
    """Segments of W, each with its exponents."""
    height = accelerator.core.height
    beats = _beats(accelerator, dram, instruction, offset, accelerator.record_beats)
    mantissa, exponent, invalid = unpack_records(accelerator, beats.reshape(-1, beats.shape[-1]))
    rows = memories.w.writes(_targets(instruction, height).reshape(-1, 1) + np.arange(height))
    memories.w_data[rows], memories.w_index[rows] = mantissa, -1
    segments = rows[:, 0] // height
    memories.w_exponent[segments], memories.w_invalid[segments] = exponent, invalid
