"""The full adder of a cell library, and the generator's full adders as that cell.

ABC maps to cells of one output alone, so whoever wants the cell has to place it before. Between the bits of a tree,
complements and not, it then finds nothing but pairs of inverters, which vanish.
"""

import itertools
import re
from dataclasses import dataclass
from functools import cache

import numpy as np

from . import liberty
from .library import Library

#: What starts the names of the generator's full adders.
KIND = "hbfp_full_adder_"
#: Name of each -> whether ``a``, ``b`` and ``total`` are complements, or else ``c`` and ``carry``
#: (``rtl/fixed/compressor.py``).
MODULES = {KIND + "n0": False, KIND + "n": True}


@dataclass(frozen=True)
class FullAdder:
    """A cell: its inputs, and of each output the pin and whether it is a complement."""
    name: str
    inputs: tuple[str, ...]
    total: tuple[str, bool]
    carry: tuple[str, bool]


@cache
def full_adder(library: Library) -> FullAdder | None:
    """The smallest cell with the functions of a full adder, whatever its name and those of its pins; None if there is
    none.
    """
    _, *found = re.split(r'\bcell\s*\(\s*"?([^")]+?)\s*"?\s*\)\s*\{', library.path.read_text())
    adders = []
    for name, body in zip(found[::2], found[1::2], strict=True):
        if len(re.findall(r"\bfunction\s*:", body)) == 2:
            cell = liberty.parse(f"cell ({name}) {{ {body} }}")
            if (adder := _adder(name, cell.all("pin"))) and float(cell.value("area", 0)) > 0:
                adders.append((float(cell.value("area")), adder))
    return min(adders, key=lambda pair: pair[0], default=(0, None))[1]


def _adder(name, pins):
    """The cell of these pins as a :class:`FullAdder`, or None."""
    inputs = tuple(pin.arguments[0] for pin in pins if pin.value("direction") == "input")
    if len(inputs) != 3:
        return None
    states = np.array([*itertools.product((False, True), repeat=3)]).T
    ones, outputs = states.sum(0), {}
    for pin in pins:
        if pin.value("function") is None:
            continue
        try:
            value = liberty.evaluate(pin.value("function"), dict(zip(inputs, states, strict=True)))
        except KeyError:    # a state, as of a flip-flop
            return None
        for which, want in (("total", ones % 2 == 1), ("carry", ones >= 2)):
            for complement in (False, True):
                if np.array_equal(value, want ^ complement):
                    outputs[which] = pin.arguments[0], complement
    return FullAdder(name, inputs, **outputs) if len(outputs) == 2 else None


def techmap(adder: FullAdder) -> str:
    """Verilog for Yosys' ``techmap``: each of :data:`MODULES` as the cell, with inverters at complements."""
    return "".join(_module(name, adder, inverted) for name, inverted in MODULES.items())


def _module(name, adder, inverted):
    def bit(pin):
        return ("~" if inverted == (pin != "c") else "") + pin
    pins = dict(zip(adder.inputs, map(bit, "abc"), strict=True)) | {adder.total[0]: "sum", adder.carry[0]: "out"}
    total = "~" * (inverted != adder.total[1]) + "sum"
    carry = "~" * (inverted == adder.carry[1]) + "out"
    wires = ", ".join(f".{pin}({wire})" for pin, wire in pins.items())
    return (f"module {name}(input a, input b, input c, output total, output carry);\n  wire sum, out;\n"
            f"  {adder.name} _TECHMAP_REPLACE_ ({wires});\n"
            f"  assign total = {total};\n  assign carry = {carry};\nendmodule\n")
