"""The manifest: all that a bench or a flow needs to know about emitted Verilog, written and read in one place.

``manifest.json`` has the fields of :class:`Manifest` in their order; what is None is left out.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from . import generator
from .design import Design
from .system import Accelerator

#: Name of the file beside the Verilog.
FILE = "manifest.json"


@dataclass(frozen=True)
class Port:
    """A port of the top module; ``direction`` is ``in`` or ``out``."""
    direction: str
    width: int
    signed: bool = False


@dataclass(frozen=True)
class Field:
    """``count`` elements of ``width`` bits from bit ``offset`` upwards, element 0 lowest."""
    name: str
    offset: int
    width: int
    count: int
    signed: bool

    @property
    def whole(self) -> bool:
        """Whether the elements are machine integers at byte borders, so that they can be copied as they are."""
        return self.width in (8, 16, 32, 64) and self.offset % 8 == 0

    @property
    def bytes(self) -> slice:
        """Byte range of the payload, for a field that is :attr:`whole`."""
        return slice(self.offset // 8, (self.offset + self.width * self.count) // 8)


@dataclass(frozen=True)
class Stream:
    """One stream of the top module: ``NAME__payload``, ``NAME__valid``, ``NAME__ready``."""
    direction: str
    width: int
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Module:
    """A module of the text.

    Attributes
    ----------
    kind : str
        What it is.
    count : int
        Its instances in the whole design.
    area : str or None
        Row of area reports that it counts to; None for that of its user.
    apart : bool or None
        Whether it is measured by itself; None where its user has more than ``inline`` of it.
    inline : int
    shape : tuple of int or None
        Of a memory: words, bits of a word; and 1, where it has one port.
    """
    kind: str
    count: int
    area: str | None
    apart: bool | None
    inline: int
    shape: tuple[int, ...] | None = None

    @property
    def bits(self) -> int:
        """Bits of memory."""
        words, width = (self.shape or (0, 0))[:2]
        return words * width


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What is known of one Verilog file.

    Attributes
    ----------
    top, verilog : str
        Name of the top module; name of the file, beside the manifest.
    ports, streams : dict
        Name -> :class:`Port` or :class:`Stream`, those of the top module in its order.
    latency : dict
        Cycles by name.
    modules : dict
        Name -> :class:`Module`.
    tools : dict
        Package -> version, of those that decide the text.
    sha256 : str
        Of the text.
    design : Design, optional
        What was emitted, or what the unit belongs to.
    derived : dict, optional
        Numbers that follow from the design; in the file they stand inside of it.
    unit, parameters : str and dict, optional
        Name and options of a unit that belongs to no design.
    accelerator : Accelerator, optional
        What was emitted around a core.
    registers : dict, optional
        Name -> ``address``, ``access`` and ``fields`` (name -> ``low``, ``width``) of the host's registers.
    memories : dict, optional
        Name of a memory's module -> ``words``, ``width``, ``granularity`` (bits that are written by themselves),
        ``count``.
    netlist : dict, optional
        Recipe, Yosys and library, if the text is a mapped netlist.
    constraints : dict, optional
        ``file``, ``clock``, ``period_ns``, ``input_delay_ns`` and ``output_delay_ns``, if there is a file of them.
    layouts : dict, optional
        The fields of ports that are no streams and have some: name -> them.
    """
    top: str
    verilog: str
    ports: dict = field(default_factory=dict)
    streams: dict = field(default_factory=dict)
    latency: dict = field(default_factory=dict)
    modules: dict = field(default_factory=dict)
    tools: dict = field(default_factory=dict)
    sha256: str = ""
    design: Design | None = None
    derived: dict | None = None
    unit: str | None = None
    parameters: dict | None = None
    accelerator: Accelerator | None = None
    registers: dict | None = None
    memories: dict | None = None
    netlist: dict | None = None
    constraints: dict | None = None
    layouts: dict | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as the file has it."""
        data = {name: value for name, value in asdict(self).items() if value is not None}
        data["modules"] = {name: {key: value for key, value in row.items() if key != "shape" or value is not None}
                           for name, row in data["modules"].items()}
        if self.design is not None:
            data["design"] |= {"derived": data.pop("derived", {})}
        return data

    def text(self) -> str:
        """The file."""
        return json.dumps(self.as_dict(), indent=1) + "\n"

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The manifest that :meth:`as_dict` made ``data`` of, also if ``data`` has been through JSON."""
        given = dict(data)
        given["ports"] = {name: Port(**row) for name, row in data.get("ports", {}).items()}
        given["streams"] = {name: Stream(row["direction"], row["width"], tuple(Field(**each) for each in row["fields"]))
                            for name, row in data.get("streams", {}).items()}
        given["modules"] = {name: Module(**row | {"shape": row.get("shape") and tuple(row["shape"])})
                            for name, row in data.get("modules", {}).items()}
        if "layouts" in data:
            given["layouts"] = {name: tuple(Field(**each) for each in rows) for name, rows in data["layouts"].items()}
        if "design" in data:
            design = dict(data["design"])
            given["derived"] = design.pop("derived", None)
            given["design"] = Design.from_dict(design)
        if "accelerator" in data:
            given["accelerator"] = Accelerator.from_dict(data["accelerator"])
        return cls(**given)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a manifest, or the manifest in a folder."""
        path = Path(path)
        return cls.from_dict(json.loads((path / FILE if path.is_dir() else path).read_text()))


def core_latency(core: Design) -> dict[str, int]:
    """Cycles of a core by name, as its manifest has them; it is generated unless it was before.

    Raises
    ------
    GeneratorError
        If the generator fails.
    """
    return Manifest.load(generator.emitted(core.name, generator.words(core))).latency
