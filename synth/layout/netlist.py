"""A laid out block as a netlist, with what its wires add: Verilog, and capacitances in SPEF."""

from collections import defaultdict
from collections.abc import Mapping

from .drawn import Block, Net, Technology

#: What connects to a port of the block.
PORT = "PIN"
#: Between a driver and each of its loads: of wires some ohms, which is next to nothing beside a driver's kiloohms.
_OHM = 0.001
_HEAD = """\
*SPEF "IEEE 1481-1998"
*DESIGN "{name}"
*DATE "none"
*VENDOR "none"
*PROGRAM "none"
*VERSION "none"
*DESIGN_FLOW "none"
*DIVIDER /
*DELIMITER :
*BUS_DELIMITER [ ]
*T_UNIT 1 NS
*C_UNIT 1 PF
*R_UNIT 1 OHM
*L_UNIT 1 HENRY
"""


def capacitances(block: Block, technology: Technology) -> dict[str, float]:
    """What the wires of each net add, pF; vias are left out."""
    return {name: sum(each.length * technology.layers[each.layer].capacitance for each in net.wires)
            for name, net in block.nets.items()}


def driver(block: Block, net: Net, outputs: Mapping[str, str]) -> tuple[str, str] | None:
    """The cell and pin that drive a net, ``outputs`` being each kind's; None if a port does."""
    return next(((instance, pin) for instance, pin in net.pins
                 if instance != PORT and outputs.get(block.cells[instance][0]) == pin), None)


def verilog(name: str, block: Block, outputs: frozenset[str]) -> str:
    """The block as a module of cells; ``outputs`` are the nets that leave it."""
    pins, ports = defaultdict(list), []
    for net, about in block.nets.items():
        for instance, pin in about.pins:
            if instance == PORT:
                ports.append(net)
            else:
                pins[instance].append(f".{pin}({_escaped(net)})")
    lines = [f"module {name}({', '.join(map(_escaped, ports))});"]
    lines += [f"  {'output' if net in outputs else 'input'} {_escaped(net)};" for net in ports]
    lines += [f"  wire {_escaped(net)};" for net in block.nets if net not in set(ports)]
    lines += [f"  {kind} {instance} ({', '.join(pins[instance])});" for instance, (kind, _, _) in block.cells.items()
              if instance in pins]
    return "\n".join([*lines, "endmodule\n"])


def spef(name: str, block: Block, added: Mapping[str, float], outputs: Mapping[str, str]) -> str:
    """Capacitances in SPEF, each at the pin that drives its net; ``outputs``: kind of a cell -> its output."""
    lines = [_HEAD.format(name=name)]
    for net, about in block.nets.items():
        first = driver(block, about, outputs)
        if first is None or not added[net]:
            continue
        from_pin, *loads = (":".join(each) for each in (first, *(
            each for each in about.pins if each[0] != PORT and each != first)))
        lines += [f"*D_NET {_marked(net)} {added[net]:.6g}", "*CONN", f"*I {from_pin} O",
                  *(f"*I {load} I" for load in loads), "*CAP", f"1 {from_pin} {added[net]:.6g}", "*RES",
                  *(f"{number} {from_pin} {load} {_OHM}" for number, load in enumerate(loads, 1)), "*END", ""]
    return "\n".join(lines)


def _escaped(name):
    return name if name.replace("_", "a").isalnum() else f"\\{name} "


def _marked(name):
    return name.replace("[", "\\[").replace("]", "\\]")
