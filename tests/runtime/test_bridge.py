"""A board over LiteX's bridge: its own server in this process, servers that are none, and a board that is silent."""

import re
import socket
import threading

import numpy as np
import pytest

from runtime.bridge import BURST, Litex, places
from runtime.device import Device, DeviceError

from .machines import MACHINE, PROGRAM, Registers

pytest.importorskip("litex")
from cosim.system.bridged import serving  # noqa: E402

from .bridged import MEMORY, REGISTERS, CommUART  # noqa: E402

SIZE = 1 << 16


@pytest.fixture
def comm():
    return CommUART(Registers(size=SIZE))


@pytest.fixture
def way(comm):
    with serving(comm) as port, Litex(REGISTERS, MEMORY, SIZE, port=port, pause=0) as found:
        yield found


def test_a_program_over_the_bridge(comm, way):
    """All as over mapped memory, but the interrupt, which is the board's CPU's; bursts are as long as they may be."""
    here, values = comm.way, np.random.default_rng(0).standard_normal((2, 3, 10)).astype(np.float32)
    device = Device(way, MACHINE)
    loaded = device.load(PROGRAM, place=4096)
    loaded.write("x", values)
    here.put("status", 2)
    here.put("cycles", 99)
    assert loaded.run().cycles == 99 and np.array_equal(loaded.read("x"), values)
    assert [here.has(name) for name in ("program_low", "base_low", "interrupt_enable")] == [
        MEMORY + 4096, MEMORY + 3 * 4096, 0]
    assert here.memory[4096:][:64 * 70].tobytes() == PROGRAM.words()
    assert here.memory[3 * 4096:][:3].tobytes() == b"abc" and not here.memory[3 * 4096 + 3:][:61].any()
    sizes = [length for kind, address, length in comm.bursts if kind == "write" and address < REGISTERS]
    assert max(sizes) == BURST and sizes[:8] == [BURST] * 8


@pytest.mark.parametrize("place, size", [(0, 0), (0, 1), (3, 2), (5, 3), (1, 4 * BURST), (4, 4 * BURST + 4), (2, 4094)])
def test_bytes_at_any_place(comm, way, place, size):
    want = np.frombuffer(np.random.default_rng(1).bytes(8192), np.uint8).copy()
    comm.way.memory[:8192] = want
    assert way.get(place, size) == want[place:place + size].tobytes()
    want[place:place + size] = 0xA5
    way.put(place, b"\xA5" * size)
    assert np.array_equal(comm.way.memory[:8192], want)


def refused(line, call, *arguments):
    with pytest.raises(OSError, match=f"^{re.escape(line)}$"):
        call(*arguments)


def test_addresses_that_are_wrong(comm):
    """Nothing answers where registers should be; nothing is kept where the memory should be."""
    with serving(comm) as port, Litex(0xA000_0000, MEMORY, SIZE, port=port) as way:
        with pytest.raises(DeviceError, match="no accelerator answers at this address: register id is 0xffffffff, not"):
            Device(way, MACHINE)
    comm.stuck = True
    with serving(comm) as port, Device(Litex(REGISTERS, MEMORY, SIZE, port=port), MACHINE) as device:
        last = int.from_bytes(PROGRAM.words()[508:512], "little")
        assert not last
        comm.way.memory[:] = 0x11
        refused(f"The memory at 0x{MEMORY + 508:x} has 0x11111111, where 0x0 was written", device.load, PROGRAM)


def listening(*answers):
    """The port of something that says a thing to who connects, and one to each packet; at last it is silent."""
    server = socket.create_server(("localhost", 0))

    def serve():
        with server, server.accept()[0] as connection:
            for answer in answers:
                connection.sendall(answer)
                if not connection.recv(4096):
                    return
            if answers[-1:] == (SILENT,):
                threading.Event().wait(3)
    threading.Thread(target=serve, daemon=True).start()
    return server.getsockname()[1]


SILENT = b""


def test_servers_that_are_none():
    with socket.create_server(("localhost", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(ConnectionError, match=f"^No litex_server at localhost:{port}: .*refused$"):
        Litex(REGISTERS, MEMORY, SIZE, port=port)
    for said in (b"SSH-2.0-x\r\n", b"CommPCIe:localhost:1234", SILENT):
        port = listening(said)
        refused(f"What answers at localhost:{port} is no litex_server of a serial line or Ethernet", lambda: Litex(
            REGISTERS, MEMORY, SIZE, port=port, patience=0.2))    # noqa: B023


@pytest.mark.parametrize("answers", [(), (SILENT,), (b"\x4e",), (b"\x4eo\x10D" + bytes(8),)])
def test_a_connection_that_breaks(answers):
    """At once, or silent, within an answer, or an answer without words: an error, and the same from then on."""
    port = listening(b"CommUART:localhost:1", *answers)
    with Litex(REGISTERS, MEMORY, SIZE, port=port, patience=0.2) as way:
        line = f"litex_server at localhost:{port} is gone, or has not answered for 0.2 s"
        refused(line, way.read, 0)
        refused(line, way.put, 0, b"abcd")
        refused(line, way.write, 0, 1)


def test_a_connection_that_breaks_below_a_call(comm):
    """What C was told is an error is raised as it was."""
    with serving(comm) as port, Device(Litex(REGISTERS, MEMORY, SIZE, port=port), MACHINE) as device:
        loaded = device.load(PROGRAM)
        device.transport._socket.shutdown(socket.SHUT_RDWR)
        for call in (loaded.start, lambda: loaded.read("x"), lambda: loaded.write("x", np.zeros(60))):
            refused(f"litex_server at localhost:{port} is gone, or has not answered for 5 s", call)


def test_without_litex(monkeypatch):
    monkeypatch.setattr("hbfp.extras.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"^litex is missing; install it with: pip install 'hbfp\[soc\]'$"):
        Litex(REGISTERS, MEMORY, SIZE)


def test_places_of_a_header(tmp_path):
    (tmp_path / "hbfp_soc.h").write_text("#define HBFP_SOC_REGISTERS 0x90000000u\n#define HBFP_SOC_MEMORY 0x40000000u\n"
                                         "#define HBFP_SOC_MEMORY_BYTES 0x02000000u\n")
    assert places(tmp_path / "hbfp_soc.h") == (0x9000_0000, 0x4000_1000, (32 << 20) - 4096)
    (tmp_path / "other.h").write_text("#define HBFP_SOC_REGISTERS 0x90000000u\n")
    with pytest.raises(ValueError, match=r"other.h is no hbfp_soc.h of python -m gen soc$"):
        places(tmp_path / "other.h")
