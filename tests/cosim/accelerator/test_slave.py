"""Programs at a slave of AXI4 from the standard alone, with errors, stops, doorbells and resets in any cycle."""

import random

import pytest

from cosim.accelerator.device import BusError
from cosim.emit import emit_accelerator
from tests.cosim.accelerator import lite, slave

pytestmark = pytest.mark.cosim
#: The build is quick; the long regression's runs are.
LEVEL = "-O0"


@pytest.mark.parametrize("seed", [0, 3, 6])
def test_programs(seed):
    assert slave.main(["--seed", str(seed)], LEVEL) == 0


def test_bytes_of_registers():
    with slave.opened(slave.SYSTEMS[0], LEVEL) as held:
        lite.check(held, slave.SYSTEMS[0], random.Random(1))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_ten_thousand_programs(part):
    assert slave.main(["--seed", str(100 * part), "--count", "100"]) == 0


@pytest.mark.parametrize(("changed", "complaint"), [
    ({"reads": 1}, "a.: more than 1 bursts are under way"), ({"windows": ((0, 64), (0, 64))}, "a.: .* the program's")])
def test_a_rule_that_is_broken_is_told(changed, complaint, monkeypatch):
    own, system = slave.Slave.set, slave.SYSTEMS[0]
    monkeypatch.setattr(slave.Slave, "set", lambda held, **settings: own(held, **settings | changed))
    with slave.opened(slave.SYSTEMS[0], LEVEL) as held, pytest.raises(BusError, match=f"^Cycle [0-9]+: {complaint}$"):
        slave.episode(held, system, slave.made(system, 0), random.Random(1), hazards=False)


def test_a_failure_says_how_to_repeat_it(monkeypatch, capsys):
    def wrong(*_, **__):
        raise AssertionError("it does not end")
    monkeypatch.setattr(slave, "episode", wrong)
    assert slave.main(["--seed", "3"], LEVEL) == 1
    assert capsys.readouterr().out.endswith("it does not end\npython -m tests.cosim.accelerator.slave --seed 3\n")


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [
    ("assign request__ready = (~awvalid | awready) & ", "assign request__ready = "), (" & not_filling_wide;", ";"),
    ("filling <= abort & ", "filling <= 1'h0 & "), ("error = rvalid & rresp[1]", "error = rvalid & rresp[0]"),
    ("error = bvalid & bresp[1]", "error = bvalid & bresp[0]"), ("(quiet | (timer >= 13'h1000))", "1'h1"),
    ("assign wvalid = ", "assign wvalid = ~awvalid & "), ("sent == lengths_o__payload;", "sent == 3'h0;"),
    ("written = pop & ", "written = push & ")], ids=[
    "an address that does not wait", "strobes behind an abort", "beats behind an abort", "an error of a read",
    "an error of a write", "an end with bursts under way", "data that wait for their address", "the last beat",
    "a write that is not answered"])
def test_what_is_wrong_is_seen(before, after, monkeypatch, tmp_path):
    """The text of the accelerator with one thing changed."""
    manifest = emit_accelerator(slave.SYSTEMS[0])
    text = manifest.verilog.read_text()
    assert text.count(before) == 1
    (tmp_path / "changed.v").write_text(text.replace(before, after))
    build = slave.Slave._built
    monkeypatch.setattr(slave.Slave, "_built", lambda self, verilog, *rest, **options: build(
        self, tmp_path / "changed.v", *rest, **options))
    assert slave.main(["--seed", "0", "--count", "61"], LEVEL, step=3) == 1
