# amaranth: UnusedElaboratable=no
"""No output of the accelerator's buses follows from one of their inputs in its cycle, as AXI has it.

A walk over Amaranth's own netlist, bit by bit. The core, the vector unit and the lanes of convert, most of the netlist,
stand in it as boxes in which everything follows from everything at once: what is found is no less than what there is.
"""

import pytest
from amaranth import Fragment, Instance, Module, Signal
from amaranth.hdl import Value
from amaranth.hdl._ir import PortDirection, build_netlist
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.system import Accelerator
from rtl.accelerator.accelerator import FULL, LITE
from rtl.accelerator.accelerator import Accelerator as Top
from rtl.accelerator.array_core import ArrayCore
from rtl.convert.encode_lane import EncodeLane
from rtl.vector.unit import Vector
from tests.cases import sweep

BOXES = ArrayCore, EncodeLane, Vector


class Boxes:
    """A platform under which some kinds of components elaborate to an instance of something unknown."""

    def __init__(self, kinds=BOXES):
        self.kinds = kinds

    def place(self, cell):
        """The instance; None if the cell's logic is wanted."""
        if not isinstance(cell, self.kinds):
            return None
        return Instance("box", **{f"{'i' if member.flow == In else 'o'}_{'__'.join(map(str, path))}": value
                                  for path, member, value in cell.signature.flatten(cell)})


def within_a_cycle(component, kinds=BOXES):
    """Output -> inputs that it follows from at once, of those that have any; the clock is none of them."""
    inputs, outputs = ({"__".join(map(str, path)): Value.cast(value)
                        for path, member, value in component.signature.flatten(component) if member.flow == flow}
                       for flow in (In, Out))
    netlist = build_netlist(Fragment.get(component, Boxes(kinds)), ports=[
        *((name, value, PortDirection.Input) for name, value in inputs.items()),
        *((name, value, PortDirection.Output) for name, value in outputs.items())])
    top = netlist.top
    named = {start + bit: name for name, (start, width) in top.ports_i.items() for bit in range(width)}
    boxes = {}    # place of a box in the netlist -> all nets that go into it

    def before(net):
        cell = netlist.cells[net.cell]
        if isinstance(cell, type(top)):
            return ()
        if type(cell).__name__ == "Instance":
            return boxes.setdefault(net.cell, {one for value in cell.ports_i.values() for one in value})
        return [one for one, _ in cell.comb_edges_to(net.bit)]

    found = {}
    for name, value in top.ports_o.items():
        seen, left = set(), list(value)
        while left:
            net = left.pop()
            if not net.is_const and net not in seen:
                seen.add(net)
                left += before(net)
        reached = {named[net.bit] for net in seen if net.cell == 0} - {"aclk", "clk"}
        if reached:
            found[name] = reached
    return found


@pytest.mark.parametrize("contexts, options", sweep(3, [(2, {"dispatch": 16, "dispatch_ring": True}), (2, {}),
                                                        (1, {"parity": True})]))
def test_no_output_follows_from_an_input_of_its_cycle(contexts, options):
    core = Design(rows=8, depth=8, format=HBFPFormat(block=(1, 8), mantissa=4))
    sizes = {f"{name}_words": 64 * contexts ** 2 for name in "vxwp"}
    found = within_a_cycle(Top.of(Accelerator(core=core, reads=3, burst=6, row_words=2, vector_rows=2,
                                              contexts=contexts, **sizes, **options)))
    assert {name: inputs for name, inputs in found.items() if name.startswith((LITE, FULL, "interrupt"))} == {}


def test_what_follows_at_once_is_found():
    """Through logic and boxes, bit by bit; not through registers."""
    class Box(wiring.Component):
        def __init__(self):
            super().__init__({"i": In(2), "o": Out(2)})

        def elaborate(self, platform):
            return platform.place(self)

    class Part(wiring.Component):
        def __init__(self):
            super().__init__({"a": In(2), "b": In(1), "c": In(1), "d": In(1), "low": Out(1), "high": Out(1),
                              "late": Out(1), "far": Out(1)})

        def elaborate(self, platform):
            m, kept, sums = Module(), Signal(), Signal(2)
            m.submodules.box = box = Box()
            m.d.comb += [sums.eq(self.a ^ self.b), self.low.eq(sums[0]), self.high.eq(sums[1]), box.i.eq(self.c),
                         self.late.eq(kept), self.far.eq(box.o[1])]
            with m.If(self.d):
                m.d.sync += kept.eq(self.b)
            return m

    assert within_a_cycle(Part(), Box) == {"low": {"a", "b"}, "high": {"a"}, "far": {"c"}}
