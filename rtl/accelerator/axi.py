"""The AXI4 master's ports, and those of AXI4-Lite, by their standard names without the prefix."""

from amaranth.lib.wiring import In, Out, Signature

from hbfp.isa.registers import SPAN, WORD

#: Bits of an address of the bus.
BUS_BITS = 64
#: Of ``awburst``, ``awcache`` and so on: addresses that count up; a normal, modifiable, bufferable access.
INCREMENTING, NORMAL = 1, 3
#: A response: it could not be done.
SLVERR = 2


def lite_signature(blocks):
    """AXI4-Lite of so many blocks of registers, one for each context and one for a dispatcher, as these see it."""
    address = (blocks * SPAN - 1).bit_length()
    return Signature({
        "awaddr": In(address), "awprot": In(3), "awvalid": In(1), "awready": Out(1),
        "wdata": In(WORD), "wstrb": In(WORD // 8), "wvalid": In(1), "wready": Out(1),
        "bresp": Out(2), "bvalid": Out(1), "bready": In(1),
        "araddr": In(address), "arprot": In(3), "arvalid": In(1), "arready": Out(1),
        "rdata": Out(WORD), "rresp": Out(2), "rvalid": Out(1), "rready": In(1)})


def read_signature(beat):
    """Address and data channels of reads, of beats of so many bytes, as who asks sees them."""
    return Signature({
        "arid": Out(1), "araddr": Out(BUS_BITS), "arlen": Out(8), "arsize": Out(3), "arburst": Out(2),
        "arlock": Out(1), "arcache": Out(4), "arprot": Out(3), "arqos": Out(4), "arvalid": Out(1),
        "arready": In(1),
        "rid": In(1), "rdata": In(8 * beat), "rresp": In(2), "rlast": In(1), "rvalid": In(1), "rready": Out(1)})


def write_signature(beat):
    """Address, data and response channels of writes."""
    return Signature({
        "awid": Out(1), "awaddr": Out(BUS_BITS), "awlen": Out(8), "awsize": Out(3), "awburst": Out(2),
        "awlock": Out(1), "awcache": Out(4), "awprot": Out(3), "awqos": Out(4), "awvalid": Out(1),
        "awready": In(1),
        "wdata": Out(8 * beat), "wstrb": Out(beat), "wlast": Out(1), "wvalid": Out(1), "wready": In(1),
        "bid": In(1), "bresp": In(2), "bvalid": In(1), "bready": Out(1)})


def constants(channel, port, beat):
    """Statements for what never changes of an address channel, ``ar`` or ``aw``, of beats of so many bytes."""
    size = (beat - 1).bit_length()
    values = {"id": 0, "size": size, "burst": INCREMENTING, "lock": 0, "cache": NORMAL, "prot": 0, "qos": 0}
    return [getattr(port, channel + name).eq(value) for name, value in values.items()]
