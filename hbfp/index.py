"""What a driver in C reads of a program file in place of JSON: an entry of words of 32 bits, the lowest byte first.

``runtime/file.c`` reads it. Behind the words of :data:`FIXED` stand arrays, in the order of their counts: values of the
registers that say what the machine is, arguments, regions (address and bytes, which lie one after the other in
``memory.bin``), and tensors: how many words this one has, address, bytes from row to row, numbers of a row, rows,
layout and role (their places in :data:`hbfp.program.LAYOUTS` and ``ROLES``), how many sides, the sides, and the name,
which ends with a zero and is filled up with zeros.
"""

import json
from hashlib import sha256
from math import prod
from typing import TYPE_CHECKING

from . import describe
from .isa.registers import parameters
from .system import Accelerator

if TYPE_CHECKING:
    from .program import Program

#: The first word, "HBFX" in ASCII, and the layout of what follows.
MAGIC, VERSION = int.from_bytes(b"HBFX", "little"), 1
#: The first words; ``bytes`` counts all of the entry.
FIXED = ("magic", "version", "bytes", "machine", "limit", "seed", "instructions", "parameters", "arguments", "regions",
         "tensors")
#: What a context's share changes, and registers tell.
_SHARED = ("x_words", "w_words", "v_words", "p_words", "contexts")


def machine(accelerator: Accelerator) -> int:
    """A hash, 32 bits, of all that an accelerator is but what its registers say of memories and contexts.

    So a program for a share of a machine has the machine's own; that of an accelerator is in its C header.
    """
    about = {name: value for name, value in describe.flat(accelerator).items() if name not in _SHARED}
    return int.from_bytes(sha256(json.dumps(about, sort_keys=True, default=str).encode()).digest()[:4], "little")


def index(program: "Program") -> bytes:
    """The entry of a program."""
    from .program import LAYOUTS, ROLES

    accelerator, tensors = program.accelerator, []
    for name, tensor in program.tensors.items():
        text = name.encode() + b"\0"
        text += bytes(-len(text) % 4)
        row, *sides = tensor.shape[-1:] or (1,), *tensor.shape
        head = [tensor.address, tensor.row_bytes(accelerator), *row, prod(tensor.shape[:-1]),
                LAYOUTS.index(tensor.layout), ROLES.index(tensor.role), len(sides), *sides]
        tensors.append(_words([1 + len(head) + len(text) // 4, *head]) + text)
    known = list(parameters(accelerator).values())
    arrays = [*known, *program.arguments, *(word for each in program.memory for word in (each.address, len(each.data)))]
    counts = [len(program.instructions), len(known), len(program.arguments), len(program.memory), len(tensors)]
    rest = _words(arrays) + b"".join(tensors)
    size = 4 * len(FIXED) + len(rest)
    return _words([MAGIC, VERSION, size, machine(accelerator), program.limit, program.seed, *counts]) + rest


def _words(values):
    return b"".join(value.to_bytes(4, "little") for value in values)
