"""Boards that systems are for, and whether a system can fit: said before anything is placed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hbfp import ecp5
from hbfp.system import Accelerator

#: Widest word, and words of it, of each shape of a block RAM of 18 kbit.
_SHAPES = ((36, 512), (18, 1024), (9, 2048), (4, 4096), (2, 8192), (1, 16384))
#: Memories of so few words become LUTs.
_DISTRIBUTED = 64


@dataclass(frozen=True)
class Device:
    """An FPGA: look-up tables, of which each has a flip-flop, and block RAMs of 18 kbit."""
    luts: int
    rams: int


@dataclass(frozen=True)
class Board:
    """A board.

    Attributes
    ----------
    title : str
    devices : dict of str to Device
        FPGAs that it comes with, the largest last.
    """
    title: str
    devices: Mapping[str, Device]


#: Bytes of ROM and of RAM on chip.
ROM, RAM = 0x4000, 0x2000
BOARDS = {"ulx3s": Board("ULX3S", {name: Device(each.luts, each.rams) for name, each in ecp5.DEVICES.items()})}
#: What LiteX's part takes: VexRiscv with its caches, 16 KiB of ROM and 8 of RAM, controller, bus; LUTs by its makers'
#: figures, with nothing to spare.
SYSTEM = Device(5000, 16)


def rams(words: int, bits: int, granule: int) -> int:
    """Block RAMs that a memory takes at least; 0 of one that becomes LUTs.

    Parameters
    ----------
    words, bits : int
    granule : int
        Bits of a word that are written alone.
    """
    if words < _DISTRIBUTED:
        return 0
    each = granule if granule % 9 and granule % 8 else bits    # parts of 8 and 9 bits may share a block
    return bits // each * min(-(-each // wide) * -(-words // deep) for wide, deep in _SHAPES)


def needed(memories: Iterable[Mapping[str, Any]], accelerator: Accelerator) -> Device:
    """What a system takes at least: its memories, and a flip-flop for each bit of a weight in the array.

    Parameters
    ----------
    memories : iterable of dict
        As the manifest has them.
    accelerator : Accelerator
    """
    blocks = sum(rams(row["words"], row["width"], row["granularity"]) * row["count"] for row in memories)
    core = accelerator.core
    return Device(SYSTEM.luts + core.rows * core.cols * accelerator.mantissa, SYSTEM.rams + blocks)


def lacking(board: Board, device: str, need: Device) -> str | None:
    """What an FPGA lacks, in one line with what would do; None if it lacks nothing that is known before mapping."""
    have = board.devices[device]
    missing = [f"{needs} {title} at least, and it has {has}" for title, needs, has in (
        ("block RAMs", need.rams, have.rams), ("LUTs or their flip-flops", need.luts, have.luts)) if needs > has]
    if not missing:
        return None
    others = [name for name, each in board.devices.items() if need.rams <= each.rams and need.luts <= each.luts]
    return (f"is too small for this accelerator: it needs {' and '.join(missing)}; " +
            (f"{others[0]} would do" if others else f"no FPGA of the {board.title} would do"))
