"""The stand-in core of standin.v with a manifest as the generator would write it."""

import json
import re
from pathlib import Path

from hbfp.design import Design
from hbfp.format import HBFPFormat

VERILOG = Path(__file__).with_name("standin.v")


def write_standin(folder, *, fault=0):
    """Write Verilog and manifest of an integer core, 4 x 3, W = 8, depth 16; return the manifest's path."""
    fmt = HBFPFormat(mantissa=8, block=(1, 4))
    design = Design(format=fmt, rows=4, cols=3, arithmetic="int", depth=16)
    text = VERILOG.read_text().replace("FAULT = 0", f"FAULT = {fault}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "standin.v").write_text(text)

    def stream(direction, *fields):
        entries, offset = [], 0
        for name, width, count, signed in fields:
            entries.append({"name": name, "offset": offset, "width": width, "count": count, "signed": signed})
            offset += width * count
        return {"direction": direction, "width": offset, "fields": entries}

    streams = {"i_cmd": stream("in", ("rows", 5, 1, False), ("tiles", 16, 1, False)),
               "i_x": stream("in", ("mantissa", 8, 4, True)), "i_w": stream("in", ("mantissa", 8, 3, True)),
               "o": stream("out", ("value", 24, 3, True), ("last", 1, 1, False))}
    ports = {"clk": {"direction": "in", "width": 1, "signed": False},
             "rst": {"direction": "in", "width": 1, "signed": False},
             "error": {"direction": "out", "width": 1, "signed": False}}
    for name, entry in streams.items():
        back = {"in": "out", "out": "in"}[entry["direction"]]
        ports |= {f"{name}__payload": {"direction": entry["direction"], "width": entry["width"], "signed": False},
                  f"{name}__valid": {"direction": entry["direction"], "width": 1, "signed": False},
                  f"{name}__ready": {"direction": back, "width": 1, "signed": False}}
    manifest = {"top": re.search(r"module (\w+)", text)[1], "verilog": "standin.v", "design": design.as_dict(),
                "ports": ports, "streams": streams, "latency": {}, "modules": {}}
    path = folder / "manifest.json"
    path.write_text(json.dumps(manifest))
    return path
