"""Firmware: who compiles it, and its segments in memory."""

import re
import struct
import subprocess
import sys

import numpy as np
import pytest

from cosim.simulate.verilator import BuildError
from cosim.system import firmware
from tests.cosim.accelerator.built import ACCELERATOR


def elf(*segments):
    """An ELF of 32 bits of (address, words); what has no address is of a kind that is not loaded."""
    head, data = 52 + 32 * len(segments), b""
    headers = b""
    for address, words in segments:
        own = struct.pack(f"<{len(words)}I", *words)
        headers += struct.pack("<8I", address is not None, head + len(data), 0, address or 0, len(own), len(own) + 64,
                               0, 4)
        data += own
    return struct.pack("<16s2H5I6H", b"\x7fELF\1\1\1", 2, 0xF3, 1, 0, 52, 0, 0, 52, 32, len(segments), 40, 0, 0
                       ) + headers + data


def test_segments_go_to_their_addresses():
    memory = np.full(64, 0xEE, np.uint8)
    firmware.place(elf((8, (1, 2)), (None, (9,)), (40, (3,)), (0, ())), memory)
    want = np.full(64, 0xEE, np.uint8)
    want[8:16], want[40:44] = [1, 0, 0, 0, 2, 0, 0, 0], [3, 0, 0, 0]
    assert np.array_equal(memory, want)
    with pytest.raises(BuildError, match="^The firmware must fit into 64 bytes, not end at 68$"):
        firmware.place(elf((60, (1, 2))), memory)


def test_who_compiles(monkeypatch):
    """Debian's compiler, else Zig's, else a line that says what to install."""
    monkeypatch.setattr(firmware.shutil, "which", lambda name: f"/bin/{name}")
    assert firmware.compiler()[:2] == ["/bin/riscv64-unknown-elf-gcc", "-march=rv32im"]
    monkeypatch.setattr(firmware.shutil, "which", lambda name: None)
    monkeypatch.setattr(firmware, "find_spec", lambda name: True)
    assert firmware.compiler()[:4] == [sys.executable, "-m", "ziglang", "cc"]
    monkeypatch.setattr(firmware, "find_spec", lambda name: None)
    line = ("riscv64-unknown-elf-gcc is missing: apt-get install gcc-riscv64-unknown-elf, or pip install 'hbfp[cpu]'")
    with pytest.raises(BuildError, match=f"^{re.escape(line)}$"):
        firmware.compiler()


def test_a_compiler_that_fails(monkeypatch, tmp_path):
    monkeypatch.setenv("HBFP_BUILD", str(tmp_path))
    monkeypatch.setattr(firmware, "compiler", lambda: ["false"])
    with pytest.raises(BuildError, match=r"^false failed on the firmware; see .*\.failed/build\.log$"):
        firmware.build(ACCELERATOR)


def test_the_driver_is_warning_free_for_risc_v(tmp_path):
    """Of 32 bits and of 64, by whatever compiler is there; it needs no function but its own."""
    try:
        command = firmware.compiler()
    except BuildError as error:
        pytest.skip(str(error))
    from hbfp.isa.rdl import header
    (tmp_path / "hbfp_accelerator.h").write_text(header(2, True, True, True))
    for name in sorted(firmware.RUNTIME.glob("*.c")):
        done = subprocess.run([*command, "-std=c99", "-Os", "-ffreestanding", "-Wall", "-Wextra", "-Wpedantic",
                               "-Werror", f"-I{tmp_path}", "-c", name, "-o", tmp_path / "a.o"], capture_output=True,
                              text=True)
        assert (done.returncode, done.stderr) == (0, ""), name
