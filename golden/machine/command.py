"""``python -m golden program`` and ``run``: what a program file holds, and what it computes."""

import hashlib
from argparse import Namespace
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from hbfp import files
from hbfp.isa.instructions import Instruction
from hbfp.isa.text import listing
from hbfp.isa.vector_words import loaded, loads
from hbfp.program import Program, load
from hbfp.values import refuse, writable_file, writing

from ..spec import vector_text
from .errors import Fault, MachineError
from .machine import Machine


def add_program(commands: Any) -> None:
    """Add the parsers of ``program`` and ``run``."""
    program = commands.add_parser("program", help="what a program file of the accelerator holds")
    program.add_argument("file", metavar="FILE", help="a program, as the lowering writes them")
    program.add_argument("--disassemble", action="store_true", help="print its instructions, and "
                         "the words of the vector unit that they load")
    run = commands.add_parser("run", help="execute a program of the accelerator, untimed")
    run.add_argument("file", metavar="FILE", help="a program, as the lowering writes them")
    run.add_argument("--races", action="store_true", help="check that waits order all accesses")
    run.add_argument("--json", metavar="FILE", help="also write the results there")


def prepare_program(args: Namespace) -> Callable[[], None]:
    """The work of ``program`` for parsed arguments; ValueError if the file is no program."""
    return partial(_describe, load(args.file, name="FILE"), args.disassemble)


def prepare_run(args: Namespace) -> Callable[[], None]:
    """The work of ``run`` for parsed arguments; ValueError if a file cannot be read or written."""
    path = None if args.json is None else writable_file("json", args.json)
    return partial(_run, load(args.file, name="FILE"), args.file, args.races, path)


def _describe(program: Program, disassemble: bool) -> None:
    if disassemble:
        print(listing(program, partial(_vector_words, program)), end="")
        return
    print(f"made for   {' '.join(program.accelerator.words())}")
    units = Counter(each.opcode.name for each in program.instructions)
    print(f"           {len(program.instructions)} instructions: "
          f"{', '.join(f'{count} {name}' for name, count in units.items())}")
    print(f"DRAM       {program.limit} bytes, {sum(len(region.data) for region in program.memory)} of them given")
    for layer in program.layers:
        print(f"layer      {layer.name}: instructions {layer.first} to {layer.stop - 1}, {layer.macs} MACs")
    for name, tensor in program.tensors.items():
        print(f"{tensor.role:10} {name}: {'x'.join(map(str, tensor.shape))} at {tensor.address}, {tensor.layout}")


def _vector_words(program: Program, instruction: Instruction) -> list[str]:
    """Lines for the words of the vector unit that a LOAD brings; equal ones together, without what fills up a beat."""
    lines = []
    for place, words in loaded(program, instruction) if loads(instruction) else ():
        if words is None:
            lines.append(f"P {place}: not given")
            continue
        while words and not words[-1]:
            words.pop()
        for word, run in groupby(words):
            count = len(list(run))
            lines.append(f"P {place}{f' to {place + count - 1}' if count > 1 else ''}: {vector_text.line(word)}")
            place += count
    return lines


def _run(program: Program, file: str, races: bool, path: Path | None) -> None:
    machine = Machine(program, races)
    try:
        machine.run()
    except Fault as error:
        raise refuse("FILE", file, f"stops with cause {error.cause.value} ({error.cause.name}). {error}") from None
    except MachineError as error:
        raise refuse("FILE", file, str(error)) from None
    results = {}
    for name, tensor in program.tensors.items():
        if tensor.role == "output":
            values = machine.get(name)
            digest = hashlib.sha256(values.tobytes()).hexdigest()
            print(f"{name}: {'x'.join(map(str, tensor.shape))} float32, sha256 {digest}")
            results[name] = {"shape": list(tensor.shape), "sha256": digest}
    if path is not None:
        with writing("json", path):
            files.write_json(path, {"instructions": len(program.instructions), "outputs": results})
