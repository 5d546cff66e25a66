"""What nextpnr says, read."""

import subprocess
from pathlib import Path

import pytest

from synth.tools import nextpnr
from synth.tools.errors import SynthError


@pytest.mark.parametrize("said, want", [("ERROR: Unable to place cell 'x', no BELs remaining", "does not fit"),
                                        ("ERROR: no such device", None)])
def test_what_the_router_says(monkeypatch, tmp_path, said, want):
    failed = subprocess.CompletedProcess([], 1, "", said + "\n")
    monkeypatch.setattr(nextpnr.subprocess, "run", lambda *args, **kwargs: failed)
    if want:
        assert nextpnr.clock(tmp_path, "nextpnr", [], 1) == want
        return
    with pytest.raises(SynthError) as caught:
        nextpnr.clock(tmp_path, "nextpnr", [], 1)
    assert str(caught.value) == f"nextpnr failed: ERROR: no such device (log: {tmp_path / 'nextpnr.log'})"


def test_router_that_takes_too_long(monkeypatch):
    def late(*args, **kwargs):
        raise subprocess.TimeoutExpired(args[0], kwargs["timeout"])
    monkeypatch.setattr(nextpnr.subprocess, "run", late)
    assert nextpnr.clock(Path(), "nextpnr", [], 7) == "> 7 s"
