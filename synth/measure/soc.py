"""A system for a board as ``python -m gen soc`` writes it: what of it Yosys and nextpnr are given."""

import json
from pathlib import Path

from hbfp.values import OptionError

from ..tools import ecp5, nextpnr
from .whole import Sources

#: Where in the folder of a system its files are, and the list of them.
FOLDER, FILE = "gateware", "soc.json"
#: LiteX says ``true`` and Yosys looks for 1, of what may not be optimised away.
_READ = "attrmap -tocase keep -imap keep=\"true\" keep=1 -imap keep=\"false\" keep=0 -remove keep=0\n"


def read(folder: Path) -> tuple[str, Sources]:
    """The FPGA of a system and its sources.

    Parameters
    ----------
    folder : Path
        As ``python -m gen soc`` has made it, for a board.

    Raises
    ------
    OptionError
        If it is not one of these, or a file is not there any more.
    """
    gateware = folder / FOLDER
    try:
        about = json.loads((gateware / FILE).read_text())
        files = {name: (gateware / name).read_bytes() for name in (*about["verilog"], *about["data"])}
        pins = (gateware / about["constraints"]).read_bytes()
        options = ("--package", about["package"], "--speed", str(about["speed"]), *nextpnr.PLACER, *nextpnr.ROUTER)
        verilog = "".join(f"read_verilog {name}\n" for name in about["verilog"])
        return about["device"], Sources(about["top"], files, verilog + _READ, options, pins, ecp5.NARROW)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OptionError(f"{folder}: is no folder that python -m gen soc has written for a board "
                          f"({type(error).__name__}: {error})") from None
