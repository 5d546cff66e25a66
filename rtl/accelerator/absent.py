"""Stand-ins for units that are not there."""

from amaranth import Module
from amaranth.lib.wiring import Out

from hbfp.isa.instructions import Opcode

from .part import Part
from .signatures import p_read, unit_members, v_read, v_write


class Vector(Part):
    """Refuses everything."""
    kind = "no_vector"

    @staticmethod
    def ports(params):
        return unit_members(Opcode.VECTOR) | {"read": Out(v_read(params)), "write": Out(v_write(params)),
                                              "p": Out(p_read())}

    def body(self, platform):
        m = Module()
        m.d.comb += self.fault.eq(self.instruction.valid)
        return m
