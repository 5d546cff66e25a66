"""Generated Verilog, module by module: what is synthesised alone and how often it counts."""

import re
from collections.abc import Container
from dataclasses import dataclass, field

from hbfp.manifest import Manifest


@dataclass
class Unit:
    """What is synthesised by itself.

    Attributes
    ----------
    top : str
        Module name.
    kind, area : str
        As in the manifest: what it is, and the row of a report that it counts to, None if that of its user.
    count : int
        How often the whole design has it.
    verilog : str
        Its modules, and empty ones for the units that it uses.
    uses : dict of str to int
        Units inside it, which count on their own.
    """
    top: str
    kind: str
    count: int
    verilog: str
    uses: dict[str, int] = field(default_factory=dict)
    area: str | None = None


def split(text: str) -> dict[str, str]:
    """Name -> text of each module."""
    return {found[1]: found[0] for found in
            re.finditer(r"^module (\w+)\b.*?^endmodule$", text, re.MULTILINE | re.DOTALL)}


def instances(body: str, names: Container[str]) -> dict[str, int]:
    """Name -> number of instances of each of ``names`` in a module."""
    found: dict[str, int] = {}
    for name in re.findall(r"^  (\w+) (?:\\\S+ |\w+) *\(", body, re.MULTILINE):
        if name in names:
            found[name] = found.get(name, 0) + 1
    return found


def stub(body: str) -> str:
    """The module with its ports alone."""
    head = body[:body.index(";") + 1]
    ports = re.findall(r"^  (input|output) (?:reg )?((?:\[\d+:0\] )?\w+)[^;\n]*;", body, re.MULTILINE)
    return "(* blackbox *)\n" + "\n".join([head, *(f"  {kind} {port};" for kind, port in ports), "endmodule"])


def units(text: str, manifest: Manifest) -> list[Unit]:
    """The units of a design, parts before their users, the top last.

    The manifest says of each module whether it is one: where ``apart`` is true it always is; where it is false, never;
    else where its user has more than ``inline`` of it, a number of the user.

    Parameters
    ----------
    text : str
        All of the Verilog.
    manifest : Manifest
    """
    bodies, modules = split(text), manifest.modules
    uses = {name: instances(body, bodies) for name, body in bodies.items()}

    def apart(name, times, user):
        wanted = modules[name].apart
        return times > modules[user].inline if wanted is None else wanted

    def gather(name):
        """Modules that belong to the unit, and the units that it uses."""
        inside, outside = [name], {}
        for part, times in uses[name].items():
            if apart(part, times, name):
                outside[part] = outside.get(part, 0) + times
            else:
                more, further = gather(part)
                inside += [n for n in more if n not in inside]
                for other, count in further.items():
                    outside[other] = outside.get(other, 0) + count * times
        return inside, outside

    result, open_units = {}, [(manifest.top, 1)]
    order = []
    while open_units:
        name, times = open_units.pop()
        if name not in result:
            inside, outside = gather(name)
            parts = [bodies[n] for n in inside] + [stub(bodies[n]) for n in outside]
            result[name] = Unit(name, modules[name].kind, 0, "\n".join(parts) + "\n", outside,
                                modules[name].area)
            order.append(name)
        result[name].count += times
        open_units += [(part, times * n) for part, n in result[name].uses.items()]
    return [result[name] for name in reversed(order)]
