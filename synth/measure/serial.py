"""A design behind six pins: words are shifted in and out, and offered as streams want it.

A core has thousands of port bits and a package has hundreds of pins. Each input comes from a chain of registers that
is filled through one pin, and each output goes to a chain that is emptied through another, so that nothing can be
optimised away and every path begins and ends in a register.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from hbfp.manifest import Port, Stream

#: Name of the module around a design.
TOP = "serial"
#: Beside a stream's payload.
_HANDSHAKE = ("valid", "ready")


@dataclass(frozen=True)
class Place:
    """Where ``width`` bits of a port are in their chain; bit 0 of a chain is shifted in last and out last."""
    port: str
    offset: int
    width: int


def chains(ports: Mapping[str, Port]) -> tuple[list[Place], list[Place]]:
    """Places of inputs and of outputs, each in the order of the ports.

    Parameters
    ----------
    ports : dict of str to hbfp.manifest.Port
        Without clock and reset.
    """
    found: dict[str, list[Place]] = {"in": [], "out": []}
    for name, port in ports.items():
        chain = found[port.direction]
        chain.append(Place(name, chain[-1].offset + chain[-1].width if chain else 0, port.width))
    return found["in"], found["out"]


def wrapper(top: str, ports: Mapping[str, Port], streams: Mapping[str, Stream], clocked: bool = True) -> str:
    """Verilog of :data:`TOP` around a module.

    Pins: ``clk``, ``rst``, ``shift`` (both chains move by a bit at every edge: in at ``i``, out at ``o``), and ``go``
    (for one cycle, while ``shift`` is low): every stream whose handshake bit of the host (``valid`` of an input,
    ``ready`` of an output) is set in the chain takes part in one transfer. An input's payload is offered until it is
    taken, or withdrawn when ``shift`` comes; an output's first word is kept. What the chain of outputs then holds for
    the bit in the other direction (``ready`` or ``valid``) says whether that transfer was made. Outputs that belong to
    no stream are sampled while ``shift`` is low; inputs that belong to none follow their chain. Pins and outputs pass
    registers.

    Parameters
    ----------
    top : str
    ports : dict of str to hbfp.manifest.Port
        Without clock and reset.
    streams : dict of str to hbfp.manifest.Stream
    clocked : bool
        Whether the module has ``clk`` and ``rst``.
    """
    given, kept = chains(ports)
    bits = [sum(place.width for place in chain) for chain in (given, kept)]
    slices = {place.port: f"[{place.offset + place.width - 1}:{place.offset}]" for place in (*given, *kept)}
    wires = {name: f"given{part}" if ports[name].direction == "in" else f"got{part}" for name, part in slices.items()}
    zero = "1'b0"
    lines, keep = [], {name: f"seen{slices[name]}" for name, port in ports.items() if port.direction == "out"}
    for name, stream in streams.items():
        mine, other = _HANDSHAKE if stream.direction == "in" else _HANDSHAKE[::-1]
        mine, other, payload = f"{name}__{mine}", f"{name}__{other}", f"{name}__payload"
        lines += [f"reg {name}__open = 0, {name}__made = 0;", f"wire {name}__now = {name}__open & {wires[other]};",
                  "always @(posedge clk) begin",
                  f"  if (reset | move) {name}__open <= 0;",
                  f"  else if (start) {name}__open <= {wires[mine]};",
                  f"  else if ({name}__now) {name}__open <= 0;",
                  f"  {name}__made <= {name}__now | ({name}__made & ~start);", "end"]
        wires[mine], keep[other] = f"{name}__open", f"{name}__made"
        if stream.direction == "out":
            lines += [f"reg {name}__take = 0;", f"always @(posedge clk) {name}__take <= {name}__now;"]
            keep[payload] = f"{name}__take ? seen{slices[payload]} : kept{slices[payload]}"
    lines += ["always @(posedge clk)", f"  if (move) kept <= {_shifted('kept', bits[1], zero)};", "  else begin",
              *(f"    kept{slices[name]} <= {value};" for name, value in keep.items()), "  end"]
    clock = [".clk(clk)", ".rst(reset)"] if clocked else []
    connected = ", ".join(clock + [f".{name}({wire})" for name, wire in wires.items()])
    head = [f"module {TOP}(input clk, input rst, input shift, input go, input i, output o);",
            f"  reg [{bits[0] - 1}:0] given = 0;", f"  reg [{bits[1] - 1}:0] kept = 0, seen = 0;",
            f"  wire [{bits[1] - 1}:0] got;", "  reg early = 1, reset = 1, move = 0, start = 0, next = 0;",
            "  always @(posedge clk) begin",
            "    early <= rst; reset <= early; move <= shift; start <= go; next <= i; seen <= got;", "  end",
            f"  always @(posedge clk) if (move) given <= {_shifted('given', bits[0], 'next')};",
            f"  assign o = kept[{bits[1] - 1}];"]
    return "\n".join([*head, *(f"  {line}" for line in [*lines, f"{top} dut ({connected});"]), "endmodule\n"])


def _shifted(name, bits, last):
    """A chain a bit further, ``last`` behind it."""
    return f"{{{name}[{bits - 2}:0], {last}}}" if bits > 1 else last
