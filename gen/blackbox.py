"""Memories without their bodies: what a memory compiler's macros take the place of."""

import re
from collections.abc import Container

#: A module's head and the lines up to its end.
_MODULE = re.compile(r"^(module (\w+)\([^)]*\);)$(.*?)^endmodule$", re.MULTILINE | re.DOTALL)
#: Declarations of ports, as Yosys writes them.
_PORT = re.compile(r"^  (input|output) (?:reg )?((?:\[\d+:0\] )?\w+).*;$", re.MULTILINE)


def without_bodies(text: str, names: Container[str]) -> str:
    """Verilog in which the modules ``names`` have their ports alone, and the attribute ``blackbox``."""
    def shorten(found):
        head, name, body = found.groups()
        if name not in names:
            return found[0]
        ports = [f"  {kind} {port};" for kind, port in _PORT.findall(body)]
        return "\n".join(["(* blackbox *)", head, *ports, "endmodule"])
    return _MODULE.sub(shorten, text)
