"""What each layer of a program moves and computes: accesses of memories, products, steps of the vector unit.

Each access counts the bytes that it is for, as the units make them: a word that convert reads twice counts twice, a row
outside its bounds is not read, and of W and X the exponents and flags count, too.
"""

from collections import Counter

from hbfp.isa.instructions import BYTES, Instruction, Memory, Opcode
from hbfp.program import Program
from hbfp.system import Accelerator

from .programs import words
from .times import layers_of, moved

#: What is counted: multiply-adds of the array, those with zeros that fill up included; FP32 numbers that a pass of the
#: vector unit computes; bytes of partial sums, of the memories, and of DRAM, instructions included.
KINDS = ("array", "vector", "sums", "X", "W", "V", "P", "DRAM")


def row_bytes(accelerator: Accelerator) -> dict[str, float]:
    """Bytes of a word of X (``X``), a row of W (``W``) and the exponents of a segment of W (``scales``)."""
    core = accelerator.core
    mantissa, scale = accelerator.mantissa / 8, (accelerator.exponent + 1) / 8 if core.blocked else 0.0
    return {"X": core.rows * mantissa + core.segments * scale, "W": accelerator.lanes * mantissa,
            "scales": accelerator.lanes * scale}


def by_layer(program: Program) -> list[Counter[str]]:
    """Of each layer, in the order of :func:`~golden.perf.accelerator.times.layers_of`: kind -> amount."""
    accelerator, size = program.accelerator, row_bytes(program.accelerator)
    steps = _vector_steps(program)
    result = []
    for _, first, stop, _ in layers_of(program):
        total: Counter[str] = Counter()
        for number in range(first, stop):
            each = program.instructions[number]
            total["DRAM"] += BYTES + moved(each, accelerator)
            if each.opcode == Opcode.VECTOR:
                total.update(steps[number])
            elif each.opcode in _COUNT:
                total.update(_COUNT[each.opcode](each, accelerator, size))
        result.append(total)
    return result


def _repeats(each: Instruction) -> int:
    return each["count0"] * each["count1"] * each["count2"]


def _load(each, accelerator, size):
    times = _repeats(each)
    if each["memory"] == Memory.W:
        return {"W": times * (accelerator.core.height * size["W"] + size["scales"])}
    brought = 4 * each["run"] if each["elements"] else accelerator.beat
    return {"V" if each["memory"] == Memory.V else "P": times * brought}


def _store(each, accelerator, size):
    """A word of V for each beat, and for each run."""
    return {"V": _repeats(each) * accelerator.beat}


def _convert(each, accelerator, size):
    core, rows, count = accelerator.core, each["rows"], each["words"]
    fmt = core.format
    twice = core.blocked and (fmt.square or each["columns"] or fmt.terms > core.rows)
    result = {"V": (2 if twice else 1) * rows * count * accelerator.beat}
    by = max(core.rows, fmt.terms) if each["columns"] else accelerator.lanes if each["to_w"] else 1
    written = -(-rows // by) * by * count // (accelerator.spread if each["sparse"] else 1)
    if not each["to_w"]:
        return result | {"X": written * size["X"]}
    return result | {"W": written * (size["W"] + size["scales"] / core.height)}


def _weights(each, accelerator, size):
    core = accelerator.core
    rows = each["tiles"] * each["repeats"] * core.rows
    return {"W": rows * (size["W"] + size["scales"] / core.height)}


def _multiply(each, accelerator, size):
    """Rows of all passes; of those within their bounds X is read."""
    core = accelerator.core
    passes = each["passes0"] * each["passes1"] * each["passes2"] * each["columns"]
    rows = each["rows0"] * each["rows1"] * passes
    read = rows
    if each["bounded"]:
        across = sum(0 <= each["x"] + i0 * each["x_row"] + p1 * each["x_pass"] < each["width"]
                     for i0 in range(each["rows0"]) for p1 in range(each["passes1"]))
        down = sum(0 <= each["y"] + i1 * each["y_row"] + p2 * each["y_pass"] < each["height"]
                   for i1 in range(each["rows1"]) for p2 in range(each["passes2"]))
        read = across * down * each["passes0"] * each["columns"]
    # Each row of a pass adds to the sum of each column: 4 bytes out of its memory, and 4 into it.
    digits, sums = 1 + each["wide_x"], accelerator.lanes // (2 if each["wide_x"] or each["wide_w"] else 1)
    words = accelerator.spread if each["sparse"] else 1    # of X, of a row
    return {"array": digits * rows * core.rows * accelerator.lanes, "sums": rows * sums * 8,
            "X": words * digits * read * size["X"]}


def _drain(each, accelerator, size):
    results = each["rows0"] * each["rows1"] / (1 + each["wide"])    # of wide ones two have a word
    return {"V": each["columns"] * (results + each["scale"] + each["bias"]) * accelerator.beat}


_COUNT = {Opcode.LOAD: _load, Opcode.STORE: _store, Opcode.CONVERT: _convert, Opcode.WEIGHTS: _weights,
          Opcode.MULTIPLY: _multiply, Opcode.DRAIN: _drain}


def _vector_steps(program):
    """Number of a VECTOR -> what it does; a row's length stays from one to the next."""
    every, firsts = words(program)
    system = program.accelerator
    lanes, length, rows = system.unit_lanes, system.row_words * system.lanes, 0
    found = {}
    for number, each in enumerate(program.instructions):
        if each.opcode != Opcode.VECTOR:
            continue
        total: Counter[str] = Counter()
        body = firsts[number] + each["before"]
        for first, stop, times in ((firsts[number], body, 1),
                                   (body, body + each["body"], each["count0"] * each["count1"])):
            for word in every[first:stop]:
                if word["length"]:
                    rows = int(word["rows"])
                    length = rows * lanes or int(word["length"])
                streams = int(word["reads"]) + int(word["writes"])
                total.update({"P": 8 * times, "vector": (0, times * -(-length // lanes) * lanes,
                                                         times * max(rows, 1))[word["passes"]],
                              "V": times * -(-length // system.lanes) * system.beat * streams})
        found[number] = total
    return found
