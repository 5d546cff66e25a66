"""Whole programs on the machine, against the golden core on whole tensors.

Covers: golden/machine/core.py, golden/machine/convert.py, golden/machine/dma.py, golden/machine/dram.py,
golden/machine/errors.py, golden/machine/layouts.py, golden/machine/loops.py, golden/machine/memories.py,
golden/machine/order.py, golden/machine/vector.py.
"""

import numpy as np
import pytest

from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.golden.core import core
from hbfp.golden.machine.errors import Fault, MachineError
from hbfp.golden.machine.machine import Machine
from hbfp.isa.instructions import Instruction, Memory, Opcode, Unit, Wait
from hbfp.program import Program, Region, Tensor
from hbfp.system import Accelerator

M, K, N, SIDE = 13, 21, 19, 8
ONE = {"count0": 1, "count1": 1, "count2": 1}
#: Words of a row of X, column tiles.
WORDS, TILES = -(-K // SIDE), -(-N // SIDE)


def machine(mantissa, block, accumulate):
    return Accelerator(core=Design(rows=SIDE, format=HBFPFormat(mantissa=mantissa, block=block), accumulate=accumulate),
                       v_words=1024, x_words=1024, w_words=1024)


def load(tensor, **values):
    return Instruction(Opcode.LOAD, ONE | {"offset": tensor.address} | values)


def weights_of(way, accelerator, tensors):
    """Instructions that bring W in, the one that they end with to wait for, and the rows of W from tile to tile."""
    whole = -(-K // max(SIDE, accelerator.core.format.terms)) * max(SIDE, accelerator.core.format.terms)
    if way == "records":
        record = accelerator.core.segments * accelerator.record_beats * accelerator.beat
        return [load(tensors["w"], memory=Memory.W, count0=accelerator.core.segments * WORDS, count1=TILES,
                     dram1=whole // SIDE * record, buffer1=WORDS * SIDE)], Wait(Unit.LOAD, 3), WORDS * SIDE
    if way == "transposed":
        return [load(tensors["w transposed"], count0=N * WORDS, base=700),
                Instruction(Opcode.CONVERT, {"to_w": 1, "base": 700, "words": WORDS, "rows": N, "stride": WORDS,
                                             "target_row": WORDS * SIDE}, (Wait(Unit.LOAD, 3),))], (
            Wait(Unit.CONVERT, 2)), WORDS * SIDE
    return [load(tensors["w words"], count0=K * TILES, base=700),
            Instruction(Opcode.CONVERT, {"to_w": 1, "columns": 1, "base": 700, "words": TILES, "rows": K,
                                         "stride": TILES, "target_word": whole}, (Wait(Unit.LOAD, 3),))], (
        Wait(Unit.CONVERT, 2)), whole


def product(way, accelerator):
    """relu(x @ w + b), all of it in one go."""
    tensors, at = {}, 0
    for name, shape, layout in [("x", (M, K), "word"), ("w", (K, N), "records"), ("b", (1, N), "word"),
                                ("y", (M, N), "word"), ("w transposed", (N, K), "word"), ("w words", (K, N), "word")]:
        tensors[name] = Tensor(at, shape, layout)
        at += -(-tensors[name].bytes(accelerator) // 4096) * 4096
    loads, ready, step = weights_of(way, accelerator, tensors)
    instructions = [
        load(tensors["x"], count0=M * WORDS),
        Instruction(Opcode.CONVERT, {"words": WORDS, "rows": M, "stride": WORDS, "target_word": 1,
                                     "target_row": WORDS}, (Wait(Unit.LOAD, 1),)),
        load(tensors["b"], count0=TILES, base=500), *loads,
        *(Instruction(Opcode.WEIGHTS, {"base": tile * step, "tiles": WORDS, "repeats": 1}, (ready,))
          for tile in range(TILES)),
        Instruction(Opcode.MULTIPLY, {"first": 1, "last": 1, "tiles": WORDS, "columns": TILES, "rows0": M, "rows1": 1,
                                      "row0": WORDS, "passes0": WORDS, "passes1": 1, "passes2": 1, "pass0": 1,
                                      "bias": 1, "relu": 1}, (Wait(Unit.CONVERT, 1),)),
        Instruction(Opcode.DRAIN, {"bias": 1, "columns": TILES, "rows0": M, "rows1": 1, "base": 600, "row0": TILES,
                                   "column": 1, "bias_base": 500}, (Wait(Unit.LOAD, 2),)),
        Instruction(Opcode.STORE, ONE | {"offset": tensors["y"].address, "base": 600, "count0": M * TILES},
                    (Wait(Unit.DRAIN, 1),)),
        Instruction(Opcode.HALT, {})]
    return Program(accelerator=accelerator, instructions=instructions, limit=at, tensors=tensors)


@pytest.mark.parametrize("way", ["records", "transposed", "rows"])
@pytest.mark.parametrize("mantissa, block, accumulate", [
    (8, (1, 8), "fp32"), (4, (1, 16), "aligned"), (8, (16, 16), "fp32"), (8, (1, 8), "aligned"), (12, (8, 8), "fp32"),
    (8, (1, 32), "fp32"), (4, (8, 8), "fp32")])
def test_product(way, mantissa, block, accumulate):
    accelerator = machine(mantissa, block, accumulate)
    pick = np.random.default_rng([mantissa, block[1]])
    x, w, b = (pick.standard_normal(shape).astype(np.float32) for shape in ((M, K), (K, N), N))
    x[3, 5], w[2, 7] = np.inf, np.nan
    device = Machine(product(way, accelerator), races=True)
    for name, values in (("x", x), ("w", w), ("b", b[None]), ("w words", w),
                         ("w transposed", np.ascontiguousarray(w.T))):
        device.set(name, values)
    device.run()
    expected = core.matmul(accelerator.core, x, w, bias=b, relu=True)
    np.testing.assert_array_equal(device.get("y").view(np.uint32), expected.view(np.uint32))


def moved(arguments, limit=4096, **values):
    """DRAM of 1024 numbers, of which a LOAD has brought two words somewhere, by arguments."""
    accelerator, numbers = machine(8, (1, 8), "fp32"), np.arange(1024, dtype=np.uint32)
    program = Program(accelerator=accelerator, limit=limit, memory=[Region(0, numbers[:limit // 4].tobytes())],
                      arguments=arguments, instructions=[
        Instruction(Opcode.LOAD, ONE | {"count0": 2, "offset": 64, "argument": 2}),
        Instruction(Opcode.STORE, ONE | {"count0": 2, **values}, (Wait(Unit.LOAD, 1),)), Instruction(Opcode.HALT, {})])
    device = Machine(program, races=True)
    device.run()
    return device.dram.data


def test_transfers_begin_where_arguments_say():
    """Offset and argument add up modulo 2^32, and the limit holds for the sum."""
    assert moved((2048, 256), argument=1, offset=32)[520:536].tolist() == list(range(80, 96))
    assert moved((2 ** 32 - 32, 256), argument=1, offset=64)[8:24].tolist() == list(range(80, 96))
    with pytest.raises(Fault, match="^Instruction 1: DRAM address 2048 and the 32 bytes from it must lie below the "
                       "limit of 2048$"):
        moved((2048, 256), limit=2048, argument=1)
    with pytest.raises(Fault, match="^Instruction 0: DRAM address 66 must be a multiple of 32$"):
        moved((0, 2))
    with pytest.raises(MachineError, match="^Instruction 1: Argument 3 is read, which the host has not written$"):
        moved((2048, 256), argument=3)


def test_words_of_elements_are_not_counted_anew():
    """Elements are numbered modulo 2^22: with 8 lanes their words reach beyond the 2^18 that addresses have."""
    accelerator = machine(8, (1, 8), "fp32")
    program = Program(accelerator=accelerator, limit=4096, memory=[Region(0, bytes(4096))], instructions=[
        Instruction(Opcode.LOAD, ONE | {"elements": 1, "run": 1, "base": 8 << 18}), Instruction(Opcode.HALT, {})])
    with pytest.raises(Fault, match=f"^Instruction 0: address {1 << 18} must be below the {accelerator.v_words} of V$"):
        Machine(program).run()
