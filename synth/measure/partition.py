"""Generated Verilog, module by module: what is synthesised alone and how often it counts."""

import re
from dataclasses import dataclass, field

#: Kinds that stay apart wherever they are used: they repeat, or a breakdown names them.
APART = ("group", "row", "array", "skew", "lanes", "partial", "fold", "fold_control", "weights", "sequencer", "drain",
         "side", "encode", "encode_lane", "ram", "recode", "correction", "xorshift32", "encode_block", "magnitude_dot",
         "block_accumulate", "chain")
#: A part of any other kind is synthesised with its user, unless the user has more of it than this ...
MOST_INLINE = 4
#: (more in a group of elements, whose columns share what they do with an activation)
MOST_IN_GROUP = 8
#: ... or it is one of these, of which users are made.
ALWAYS_INLINE = ("adder", "dot")


@dataclass
class Unit:
    """What is synthesised by itself.

    Attributes
    ----------
    top : str
        Module name.
    kind : str
        As in the manifest.
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
    uses: dict = field(default_factory=dict)


def split(text):
    """Name -> text of each module."""
    return {found[1]: found[0] for found in
            re.finditer(r"^module (\w+)\b.*?^endmodule$", text, re.MULTILINE | re.DOTALL)}


def instances(body, names):
    """Name -> number of instances of each of ``names`` in a module."""
    found = {}
    for name in re.findall(r"^  (\w+) (?:\\\S+ |\w+) *\(", body, re.MULTILINE):
        if name in names:
            found[name] = found.get(name, 0) + 1
    return found


def stub(body):
    """The module with its ports alone."""
    head = body[:body.index(";") + 1]
    ports = re.findall(r"^  (?:input|output)\b[^;]*;", body, re.MULTILINE)
    return "(* blackbox *)\n" + "\n".join([head, *ports, "endmodule"])


def units(text, manifest):
    """The units of a design, parts before their users, the top last.

    Parameters
    ----------
    text : str
        All of the Verilog.
    manifest : dict
    """
    bodies, kinds = split(text), manifest["modules"]
    uses = {name: instances(body, bodies) for name, body in bodies.items()}

    def apart(name, times, user):
        kind = kinds[name]["kind"]
        most = MOST_IN_GROUP if kinds[user]["kind"] == "group" else MOST_INLINE
        return kind in APART or times > most and kind not in ALWAYS_INLINE

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

    result, open_units = {}, [(manifest["top"], 1)]
    order = []
    while open_units:
        name, times = open_units.pop()
        if name not in result:
            inside, outside = gather(name)
            parts = [bodies[n] for n in inside] + [stub(bodies[n]) for n in outside]
            result[name] = Unit(name, kinds[name]["kind"] or name.split("_")[1], 0, "\n".join(parts) + "\n", outside)
            order.append(name)
        result[name].count += times
        open_units += [(part, times * n) for part, n in result[name].uses.items()]
    return [result[name] for name in reversed(order)]
