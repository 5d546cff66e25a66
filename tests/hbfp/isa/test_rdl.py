"""The C header compiles and has the map's numbers; SystemRDL has every register and field at its place."""

import re
import shutil
import subprocess

import pytest

from hbfp.isa.rdl import header, rdl
from hbfp.isa.registers import SPAN, Cause, registers


@pytest.mark.parametrize("contexts", [1, 2])
def test_rdl_has_every_register_and_field(contexts):
    text, found = rdl(contexts), registers(contexts)
    assert re.findall(r"^    \} (\w+) @ 0x(\w+);$", text, re.MULTILINE) == [
        (register.name, f"{register.address:03X}") for register in found]
    fields = re.findall(r" (\w+)\[(\d+):(\d+)\](?: = (\d+))?;$", text, re.MULTILINE)
    assert [(name, int(high), int(low)) for name, high, low, _ in fields] == [
        (each[0], each[1] + each[2] - 1, each[1]) for register in found
        for each in ([(field.name, field.low, field.width) for field in register.fields] or [("value", 0, 32)])]
    assert text.count("{") == text.count("}")
    assert [reset for *_, reset in fields if reset not in ("", "0")] == ["16"] * 4 * 2 * (contexts - 1)


@pytest.mark.parametrize("contexts", [1, 2])
def test_header_has_the_map(contexts):
    text = header(contexts)
    found = dict(re.findall(r"^#define (\w+) (\w+)u", text, re.MULTILINE))
    assert len(found) == text.count("#define") - 1    # each name once
    assert int(found["HBFP_SPAN"]) == contexts * SPAN
    for register in registers(contexts):
        name = f"HBFP_REG_{register.name.upper()}"
        assert int(found[name], 16) == register.address
        for field in register.fields:
            shift = int(found[f"{name}_{field.name.upper()}_SHIFT"])
            mask = int(found[f"{name}_{field.name.upper()}_MASK"], 16)
            assert (shift, mask >> shift) == (field.low, (1 << field.width) - 1)
    assert {name: int(found[f"HBFP_CAUSE_{name}"]) for name in Cause.__members__} == Cause.__members__
    assert found["HBFP_IDENTITY"] == "0x50464248"


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_header_compiles(tmp_path):
    (tmp_path / "hbfp.h").write_text(header(2))
    (tmp_path / "a.c").write_text('#include "hbfp.h"\n#include "hbfp.h"\nint main(void) { return HBFP_REG_ID + '
                                  "HBFP_REG_CONTROL_START_MASK - 1; }\n")
    done = subprocess.run(["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-o", tmp_path / "a", tmp_path / "a.c"],
                          capture_output=True, text=True)
    assert not done.returncode, done.stderr
    assert subprocess.run([tmp_path / "a"]).returncode == 0
