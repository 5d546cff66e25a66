"""What tests feed to files, command lines and calls: valid things that are changed, and things of all kinds."""

import json
import random
import zipfile
from io import BytesIO
from typing import Any

import numpy as np
import torch

from hbfp import HBFPConfig, describe, quantize_
from hbfp.design import Design
from hbfp.fields import Choice, Whole
from hbfp.format import HBFPFormat
from hbfp.golden import nn
from hbfp.golden.bfp import decode, emulate, encode
from hbfp.golden.machine.random_programs import random_program
from hbfp.golden.matmul import matmul
from hbfp.isa.instructions import Instruction, Opcode, Unit, Wait
from hbfp.program import Program, Region
from hbfp.system import Accelerator, Share
from tests.nasty import GOOD, NASTY

SMALL = Accelerator(core=Design(rows=8, format=HBFPFormat(block=(1, 8))), x_words=64, w_words=64, v_words=64,
                    p_words=64, row_words=3)
PROGRAM = random_program(SMALL, 0, 2).to_bytes()
FORMAT = HBFPFormat(block=(1, 4))


def changed_bytes(data: bytes, pick: random.Random) -> bytes:
    """Some bytes of a file are others, are missing, or are there twice; or all of it is random."""
    found = bytearray(data)
    for _ in range(pick.choice((1, 1, 2, 5))):
        at = pick.randrange(len(found)) if found else 0
        match pick.choice(("bit", "byte", "cut", "out", "twice", "tail")):
            case "bit":
                found[at:at + 1] = bytes(each ^ 1 << pick.randrange(8) for each in found[at:at + 1])
            case "byte":
                found[at:at + 1] = pick.randbytes(1)
            case "cut":
                del found[at:]
            case "out":
                del found[at:at + pick.randrange(1, 100)]
            case "twice":
                found[at:at] = found[at:at + pick.randrange(1, 100)]
            case "tail":    # where an archive says what it holds
                at = max(0, len(found) - pick.randrange(1, 400))
                found[at:at + 1] = pick.randbytes(1)
    return bytes(found) if pick.random() < 0.9 else pick.randbytes(pick.randrange(3000))


def _leaves(value, path=()):
    """Where something stands in plain data."""
    for key, each in (value.items() if isinstance(value, dict) else enumerate(value)):
        yield (*path, key)
        if isinstance(each, dict | list):
            yield from _leaves(each, (*path, key))


def changed_header(data: bytes, pick: random.Random) -> bytes:
    """An archive as it should be, whose header says something else in a place."""
    with zipfile.ZipFile(BytesIO(data)) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    header = json.loads(entries["program.json"])
    *outer, last = pick.choice(list(_leaves(header)))
    place = header
    for key in outer:
        place = place[key]
    place[last] = pick.choice((None, -1, 0, 1, 1 << 40, 10 ** 400, 1.5, True, "", "x", [], [[]], {}, [1], {"a": 1}))
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name, each in (entries | {"program.json": json.dumps(header).encode()}).items():
            file.writestr(name, each)
    return archive.getvalue()


def value_of(field: Any, pick: random.Random) -> str:
    """A value of an option: one at an end of what is valid, one beyond, or anything."""
    match field:
        case _ if pick.random() < 0.1:
            return pick.choice(pick.choice((GOOD, NASTY)))
        case Whole(low=low, high=high):
            near = [low, low + 1, high - 1, high, *(2 ** power for power in range(11) if low <= 2 ** power <= high)]
            return str(pick.choice([*near, *near, low - 1, high + 1]))
        case Choice(choices=choices):
            return pick.choice(choices)
    return pick.choice(("1,4", "4,4", "1,8", "8,4", "2,4", "1,16", "4,1"))


def options(kind: type, pick: random.Random) -> dict[str, str]:
    """Values of some options of a description."""
    declared = describe.declared(kind)
    return {name: value_of(declared[name][0], pick) for name in pick.sample(list(declared), pick.choice((1, 2, 3, 5)))}


def toml(values: dict[str, str], pick: random.Random | None) -> str:
    """A file of options: numbers as numbers, pairs as lists, the rest as text; with ``pick`` a line is spoilt."""
    lines = []
    for name, value in values.items():
        plain = value.lstrip("-").isascii() and value.lstrip("-").isdigit() and len(value) < 30
        pair = all(part.isascii() and part.isdigit() and len(part) < 30 for part in value.split(",")) and "," in value
        text = str(int(value)) if plain else f"[{value}]" if pair else json.dumps(value)
        lines.append(f"{name} = {text}")
    if pick is not None:
        at = pick.randrange(len(lines))
        line = lines[at]
        lines[at] = pick.choice((line + " =", "[" + line, line.replace("=", ""), line + "\n" + line, f"[a]\n{line}",
                                 "\0", f"{pick.choice(NASTY)} = 1", line[:pick.randrange(len(line))]))
    return "\n".join(lines)


_ARRAYS = [np.zeros((4, 4), np.float32), np.ones((4, 8)), np.arange(8.), np.zeros((0, 4), np.float32), np.array(3.0),
           np.zeros((4, 4), complex), np.zeros((2, 2, 2), np.float32), np.array([["a", "b"]]), np.zeros((4, 4), bool),
           np.zeros((4, 4), np.int64), np.array([[1, None]], object), [[1., 2.], [3., 4.]], [[1.], [1., 2.]],
           np.full((4, 4), np.nan, np.float32), torch.zeros(4, 4), torch.zeros(3, dtype=torch.int32)]
_THINGS = [None, 0, 1, -1, 3, 8, 1 << 70, 2.5, float("nan"), float("inf"), "", "hbfp8", "x", b"x", True, (), (1,),
           (1, 4), (1, 4, 4), (0, 0), ("a", 1), [1, 4], {}, {"rows": 1}, object(), FORMAT, Design(), SMALL, np.int64(4),
           np.float32(2), int, len, *_ARRAYS]


def _model():
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())


def _waiting(unit, count):
    return Instruction(Opcode.HALT, {}, (Wait(unit, count),))


def _fields(kind, made):
    return kind, (), {name: getattr(made, name) for name in kind.__dataclass_fields__}


#: Name -> what is called, and arguments that are valid, those that may be left out by their names.
CALLS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "matmul": (matmul, (_ARRAYS[0], _ARRAYS[0], FORMAT), {"accumulate": "bf16", "growth": 8}),
    "encode": (encode, (_ARRAYS[0], FORMAT), {"axis": -1}),
    "decode": (decode, (encode(_ARRAYS[0], FORMAT),), {}),
    "emulate": (emulate, (_ARRAYS[0], FORMAT), {}),
    "HBFPFormat": _fields(HBFPFormat, FORMAT), "Design": _fields(Design, SMALL.core),
    "Accelerator": _fields(Accelerator, SMALL), "Share": (Share, ((0,) * 4, (16,) * 4), {}),
    "convert": (nn.convert, (_model, "hbfp8"), {"mode": "emulator", "side": None, "seed": 1}),
    "HBFPConfig": (HBFPConfig, ("hbfp8",), {"w": "hbfp6", "exclude": ["first"], "layers": {"a": "hbfp4"}, "seed": 3}),
    "quantize_": (quantize_, (_model, HBFPConfig("hbfp8")), {}),
    "Program": (Program, (), {"accelerator": SMALL, "instructions": (), "limit": 4096, "memory": (), "tensors": {},
                              "layers": (), "arguments": (1, 2), "seed": 0, "requests": ()}),
    "Program.from_bytes": (Program.from_bytes, (PROGRAM,), {}),
    "Region": (Region, (0, b"x"), {}), "Instruction": (Instruction, (Opcode.LOAD, {"count0": 1}, ()), {}),
    "Wait": (_waiting, (Unit.LOAD, 1), {}),
}
#: What a call needs in any case, though by name.
NEEDED = {"Program": ("accelerator", "instructions", "limit")}


def call(name: str, pick: random.Random) -> tuple[Any, list[Any], dict[str, Any]]:
    """What is called, and its arguments: one of them, or some, are anything."""
    function, valid, named = CALLS[name]
    given = [each() if each is _model else each for each in valid]
    chosen = {each: named[each] for each in named if each in NEEDED.get(name, ()) or pick.random() < 0.3}
    places = [*range(len(given)), *chosen]
    for place in pick.sample(places, min(len(places), pick.choice((0, 1, 1, 1, 2)))):
        (given if isinstance(place, int) else chosen)[place] = pick.choice(_THINGS)    # type: ignore[index]
    return function, given, chosen
