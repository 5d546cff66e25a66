"""The AXI4 master's ports, by their standard names without the prefix."""

from amaranth.lib.wiring import In, Out

#: Bits of an address of the bus.
BUS_BITS = 64
#: Of ``awburst``, ``awcache`` and so on: addresses that count up; a normal, modifiable, bufferable access.
INCREMENTING, NORMAL = 1, 3


def read_members(bits):
    """Address and data channels of reads, ``bits`` wide."""
    return {"arid": Out(1), "araddr": Out(BUS_BITS), "arlen": Out(8), "arsize": Out(3), "arburst": Out(2),
            "arlock": Out(1), "arcache": Out(4), "arprot": Out(3), "arqos": Out(4), "arvalid": Out(1),
            "arready": In(1),
            "rid": In(1), "rdata": In(bits), "rresp": In(2), "rlast": In(1), "rvalid": In(1), "rready": Out(1)}


def write_members(bits):
    """Address, data and response channels of writes."""
    return {"awid": Out(1), "awaddr": Out(BUS_BITS), "awlen": Out(8), "awsize": Out(3), "awburst": Out(2),
            "awlock": Out(1), "awcache": Out(4), "awprot": Out(3), "awqos": Out(4), "awvalid": Out(1),
            "awready": In(1),
            "wdata": Out(bits), "wstrb": Out(bits // 8), "wlast": Out(1), "wvalid": Out(1), "wready": In(1),
            "bid": In(1), "bresp": In(2), "bvalid": In(1), "bready": Out(1)}


def constants(channel, port, beat):
    """Statements for what never changes of an address channel, ``ar`` or ``aw``, of beats of so many bytes."""
    size = (beat - 1).bit_length()
    values = {"id": 0, "size": size, "burst": INCREMENTING, "lock": 0, "cache": NORMAL, "prot": 0, "qos": 0}
    return [getattr(port, channel + name).eq(value) for name, value in values.items()]
