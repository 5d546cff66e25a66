"""Programs of the accelerator as files: what the golden machine, the cycle model and the Verilog run alike.

A file is a ZIP archive of four entries, stored as they are: ``index.bin``, which C reads (:mod:`hbfp.index`),
``program.json``, ``instructions.bin`` (64 bytes each, the lowest byte first) and ``memory.bin`` (the regions of DRAM,
one after the other). Equal programs give equal bytes. Files without the first are read, too.
"""

import io
import json
import os
import zipfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from math import prod
from typing import Self

from . import describe
from .checks import check_kind
from .files import write
from .index import index
from .isa.instructions import ARGUMENTS, BYTES, IllegalInstruction, Instruction, Opcode, decode
from .system import Accelerator
from .values import OptionError, readable_file, refuse, shown

#: How the numbers of a tensor lie in DRAM (docs/design/11-accelerator.md), and what the tensor is for the program.
LAYOUTS, ROLES = ("word", "dense", "records"), ("input", "output", "weight", "inner")
#: Of the file; a reader refuses others.
VERSION = 1
ENTRIES, INDEX = ("program.json", "instructions.bin", "memory.bin"), "index.bin"
#: A ZIP archive cannot say an earlier time; equal programs shall give equal bytes.
_TIME = (1980, 1, 1, 0, 0, 0)


#: Beyond all addresses, which have 32 bits, and all counts.
_MOST = (1 << 32) - 1


class ProgramError(ValueError):
    """A program contradicts itself, cannot be for its machine, or a file is none; one line."""


def _check_whole(what, value, least=0, most=_MOST):
    """ProgramError unless a value is a whole number that a program can have."""
    if type(value) is not int or not least <= value <= most:
        raise ProgramError(f"{what} must be {least} to {most}, not {shown(repr(value))}")


def _sequence(what, values):
    """Values as a tuple; ProgramError if they are none."""
    if not isinstance(values, (tuple, list)):
        raise ProgramError(f"{what} must be a list, not {shown(values)}")
    return tuple(values)


def _no_archive(why):
    return ProgramError(f"A program must be an archive of {', '.join(ENTRIES)} ({why})")


def _entries(data):
    """The entries of a file, but the index; ProgramError unless it holds each once, stored, and no other."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            names = Counter(file.namelist())
            if names not in (Counter(ENTRIES), Counter((INDEX, *ENTRIES))):
                raise _no_archive("it holds " + (shown(", ".join(names.elements())) or "nothing"))
            if any(each.compress_type != zipfile.ZIP_STORED for each in file.infolist()):
                raise _no_archive("it is compressed")
            found = {name: file.read(name) for name in names}    # of the index, too: its check sum
            return [found[name] for name in ENTRIES]
    except ProgramError:
        raise
    except Exception as error:    # zipfile answers broken archives with errors of many kinds
        raise _no_archive(shown(error)) from None


def _once(pairs):
    """The object of a JSON text; ProgramError if a name is in it twice."""
    names = Counter(name for name, _ in pairs)
    if twice := [name for name, count in names.items() if count > 1]:
        raise ProgramError(f"A program must have {shown(', '.join(twice))} once, not more often")
    return dict(pairs)


@dataclass(frozen=True)
class Tensor:
    """Where a tensor lies in DRAM.

    Attributes
    ----------
    address : int
        Byte of its first element, counted from the base register.
    shape : tuple of int
        Images have (height, width, channels), with the batch before them. Of ``records``: (K, N) of the matrix.
    layout : str
        ``word`` or ``dense``, numbers in FP32; ``records``, weights as memory W takes them.
    role : str
        ``input``, ``output``, ``weight`` or ``inner``.
    row : int
        Bytes from one row of the last dimension to the next; 0 is what the layout needs.
    """
    address: int
    shape: tuple[int, ...]
    layout: str = "word"
    role: str = "inner"
    row: int = 0

    def __post_init__(self):
        object.__setattr__(self, "shape", _sequence("Shape", self.shape))
        _check_whole("Address", self.address)
        _check_whole("Row", self.row)
        for side in self.shape:
            _check_whole("Side of a shape", side, 1)
        if self.layout == "records" and len(self.shape) != 2:
            raise ProgramError(f"Shape of records must have 2 sides, not {len(self.shape)}")
        for what, value, choices in (("Layout", self.layout, LAYOUTS), ("Role", self.role, ROLES)):
            if value not in choices:
                raise ProgramError(f"{what} must be one of {', '.join(choices)}, not {value!r}")

    def row_bytes(self, accelerator: Accelerator) -> int:
        """Bytes from one row to the next."""
        return self.row or self.needed(accelerator)

    def needed(self, accelerator: Accelerator) -> int:
        """Bytes of one row by itself."""
        elements = self.shape[-1] if self.shape else 1
        return 4 * elements if self.layout == "dense" else -(-elements // accelerator.lanes) * accelerator.beat

    def bytes(self, accelerator: Accelerator) -> int:
        """Bytes from its first to its last."""
        if self.layout == "records":
            terms, columns = self.shape
            core = accelerator.core
            tall = max(core.rows, core.format.terms)
            records = -(-terms // tall) * tall // core.height * -(-columns // accelerator.lanes)
            return records * accelerator.record_beats * accelerator.beat
        return (prod(self.shape[:-1]) - 1) * self.row_bytes(accelerator) + self.needed(accelerator)


@dataclass(frozen=True)
class Region:
    """Bytes of DRAM before the program runs, from ``address`` on, counted from the base register."""
    address: int
    data: bytes

    def __post_init__(self):
        _check_whole("Address", self.address)

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.address + len(self.data)


@dataclass(frozen=True)
class Product:
    """``count`` products of matrices (rows, terms) by (terms, columns)."""
    rows: int
    terms: int
    columns: int
    count: int = 1

    def __post_init__(self):
        for name in ("rows", "terms", "columns", "count"):
            _check_whole(f"{name.capitalize()} of a product", getattr(self, name), 1)

    @property
    def macs(self) -> int:
        """Multiply-adds of all of them."""
        return self.count * self.rows * self.terms * self.columns


@dataclass(frozen=True)
class Layer:
    """A part of a program.

    Attributes
    ----------
    name : str
    first, stop : int
        Its instructions are ``first`` to ``stop`` - 1.
    macs : int
        Multiply-adds of its products.
    products : sequence of Product
        What they are, if that is known.
    """
    name: str
    first: int
    stop: int
    macs: int = 0
    products: tuple[Product, ...] = ()

    def __post_init__(self):
        if not isinstance(self.name, str):
            raise ProgramError(f"Name of a layer must be text, not {shown(repr(self.name))}")
        for name, most in (("first", _MOST), ("stop", _MOST), ("macs", _MOST ** 2)):
            _check_whole(f"{name.capitalize()} of layer {shown(self.name)}", getattr(self, name), most=most)
        object.__setattr__(self, "products", _sequence("Products", self.products))


@dataclass(frozen=True, kw_only=True)
class Program:
    """All that a run needs.

    Parameters
    ----------
    accelerator : Accelerator
        The machine that it was made for.
    instructions : sequence of Instruction
        In the order in which they are fetched.
    limit : int
        Bytes from the base register that loads and stores reach: the register ``limit``.
    memory : sequence of Region
        DRAM before the run, in ascending order; the rest is undefined.
    tensors : dict
        Name -> :class:`Tensor`.
    layers : sequence of Layer
    arguments : sequence of int
        Values of the registers ``argument1`` and so on; those that are missing are undefined.
    requests : sequence of (int, int)
        Where inputs and outputs of its batch's requests lie; those that are missing are the last one again.
    seed : int
        What the register ``seed`` has while it runs.

    Raises
    ------
    ProgramError
        If regions overlap, or something lies beyond the limit or the instructions.
    """
    accelerator: Accelerator
    instructions: tuple[Instruction, ...]
    limit: int
    memory: tuple[Region, ...] = ()
    tensors: dict[str, Tensor] = field(default_factory=dict)
    layers: tuple[Layer, ...] = ()
    arguments: tuple[int, ...] = ()
    seed: int = 0
    requests: tuple[tuple[int, int], ...] = ()

    def __post_init__(self):
        check_kind("Accelerator", self.accelerator, Accelerator)
        check_kind("Tensors", self.tensors, Mapping)
        for name in ("instructions", "memory", "layers", "arguments", "requests"):
            object.__setattr__(self, name, _sequence(name.capitalize(), getattr(self, name)))
        for what, kind, values in (
                ("An instruction", Instruction, self.instructions), ("A region", Region, self.memory),
                ("A layer", Layer, self.layers), ("A tensor", Tensor, self.tensors.values())):
            for each in values:
                check_kind(what, each, kind)
        _check_whole("Limit", self.limit)
        _check_whole("Number of arguments", len(self.arguments), most=ARGUMENTS)
        for number, value in enumerate(self.arguments, 1):
            _check_whole(f"Argument {number}", value)
        object.__setattr__(self, "requests", tuple(_sequence("Places of a request", each) for each in self.requests))
        _check_whole("Number of requests", len(self.requests), most=self.accelerator.requests)
        for each in self.requests:
            _check_whole("Places of a request", len(each), 2, 2)
            for name, value in zip(("input", "output"), each, strict=True):
                _check_whole(f"Place of a request's {name}", value)
        _check_whole("Seed", self.seed, most=_MOST if self.accelerator.stochastic else 0)
        if self.limit % self.accelerator.beat:
            raise ProgramError(f"Limit must be a multiple of the beat of {self.accelerator.beat} bytes, not "
                               f"{self.limit}")
        for first, second in pairwise(self.memory):
            if second.address < first.end:
                raise ProgramError(f"Region at {second.address} must lie behind the one before, which ends at "
                                   f"{first.end}")
        ends = [(f"Region at {region.address}", region.end) for region in self.memory]
        ends += [(f"Tensor {name}", tensor.address + tensor.bytes(self.accelerator))
                 for name, tensor in self.tensors.items()]
        for name, tensor in self.tensors.items():
            if tensor.row and tensor.row < tensor.needed(self.accelerator):
                least = tensor.needed(self.accelerator)
                raise ProgramError(f"Row of tensor {name} must be 0, or the {least} bytes that it needs or more, not "
                                   f"{tensor.row}")
        for what, end in ends:
            if end > self.limit:
                raise ProgramError(f"{what} must end at the limit of {self.limit} or before it, not at {end}")
        for layer in self.layers:
            if not 0 <= layer.first <= layer.stop <= len(self.instructions):
                raise ProgramError(f"Layer {layer.name} must be of the {len(self.instructions)} instructions, not "
                                   f"{layer.first} to {layer.stop}")

    def argument(self, number: int) -> int:
        """The value of the register ``argument`` with this number; ProgramError if it is undefined."""
        if number > len(self.arguments):
            raise ProgramError(f"Argument {number} must have a value where an instruction reads it")
        return self.arguments[number - 1]

    def registers(self) -> dict[str, int]:
        """Name -> value of the registers that hold its arguments, and its seed where the accelerator has one."""
        return {**{f"argument{number}": value for number, value in enumerate(self.arguments, 1)},
                **({"seed": self.seed} if self.accelerator.stochastic else {})}

    def offset(self, instruction: Instruction) -> int:
        """Where a LOAD or STORE begins in DRAM: its offset and its argument or its request's place, if it has one of
        them, modulo 2^32.
        """
        number, request, further = instruction["argument"], instruction["request"], 0
        if number:
            further = self.argument(number)
        elif request:
            if not self.requests:
                raise ProgramError(f"Request {request} must have a place where an instruction reads it")
            further = self.requests[min(request, len(self.requests)) - 1][instruction.opcode == Opcode.STORE]
        return (instruction["offset"] + further) & _MOST

    def rewritten(self, instructions: Mapping[int, Instruction]) -> Self:
        """The program with instructions in place of those of these numbers."""
        return replace(self, instructions=tuple(instructions.get(number, each)
                                                for number, each in enumerate(self.instructions)))

    def words(self) -> bytes:
        """The instructions as bytes, as they lie in DRAM at the register ``program``."""
        return b"".join(each.encode().to_bytes(BYTES, "little") for each in self.instructions)

    def to_bytes(self) -> bytes:
        """The file."""
        header = {"version": VERSION, "accelerator": self.accelerator.as_dict(), "limit": self.limit,
                  "arguments": self.arguments, "memory": [[region.address, len(region.data)] for region in self.memory],
                  "tensors": {name: asdict(tensor) for name, tensor in self.tensors.items()},
                  "layers": [asdict(layer) for layer in self.layers]} | {
                      name: value for name, value in (("seed", self.seed), ("requests", self.requests)) if value}
        entries = index(self), (json.dumps(header, indent=1) + "\n").encode(), self.words(), b"".join(
            region.data for region in self.memory)
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as file:
            for name, data in zip((INDEX, *ENTRIES), entries, strict=True):
                file.writestr(zipfile.ZipInfo(name, _TIME), data)
        return archive.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The program that :meth:`to_bytes` made ``data`` of; ProgramError if ``data`` is no program."""
        try:
            return cls._parse(*_entries(data))
        except IllegalInstruction as error:
            raise ProgramError(f"Instructions must be legal: {error}") from None
        except (KeyError, TypeError, AttributeError, UnicodeDecodeError, RecursionError,
                json.JSONDecodeError) as error:
            raise _no_archive(shown(error)) from None
        except ProgramError:
            raise
        except ValueError as error:
            raise ProgramError(str(error)) from None

    @classmethod
    def _parse(cls, text, words, memory):
        header = json.loads(text, object_pairs_hook=_once)
        if type(header["version"]) is not int or header["version"] != VERSION:
            raise ProgramError(f"Version must be {VERSION}, not {shown(header['version'])}")
        if len(words) % BYTES or len(memory) != sum(size for _, size in header["memory"]):
            raise ProgramError(f"A program must have whole instructions and regions, not {len(words)} and "
                               f"{len(memory)} bytes")
        regions, position = [], 0
        for address, size in header["memory"]:
            regions.append(Region(address, memory[position:position + size]))
            position += size
        return cls(accelerator=Accelerator.from_dict(header["accelerator"]),
                   instructions=[decode(int.from_bytes(words[at:at + BYTES], "little"))
                                 for at in range(0, len(words), BYTES)],
                   limit=header["limit"], arguments=header.get("arguments", ()),
                   requests=header.get("requests", ()), memory=regions,
                   seed=header.get("seed", 0),
                   tensors={name: Tensor(**tensor) for name, tensor in header["tensors"].items()},
                   layers=[Layer(**layer | {"products": [Product(**each) for each in layer.get("products", ())]})
                           for layer in header["layers"]])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file, whole or not at all."""
        write(path, self.to_bytes())

    def check_made_for(self, accelerator: Accelerator) -> None:
        """Raise ProgramError, with the options that differ, unless the program was made for ``accelerator``."""
        if self.accelerator == accelerator:
            return
        own, other = (describe.flat(each) for each in (self.accelerator, accelerator))
        kinds = describe.declared(Accelerator)
        differ = [name for name in own if own[name] != other[name]]
        mine, theirs = (" ".join(word for name in differ for word in kinds[name][0].words(name, values[name])) or "none"
                        for values in (own, other))
        raise ProgramError(f"The program was made for another accelerator: {mine}, not {theirs}")


def load(path: str | os.PathLike[str], accelerator: Accelerator | None = None, name: str = "program") -> Program:
    """Read a program.

    Parameters
    ----------
    path : str or Path
        The file.
    accelerator : Accelerator, optional
        The machine that it must have been made for.
    name : str
        The option that gave the path, for messages.

    Raises
    ------
    OptionError
        If the file cannot be read, is no program, or was made for another machine; one line.
    """
    try:
        program = Program.from_bytes(readable_file(name, path).read_bytes())
        if accelerator is not None:
            program.check_made_for(accelerator)
    except ValueError as error:
        raise error if isinstance(error, OptionError) else refuse(name, path, str(error)) from None
    return program
