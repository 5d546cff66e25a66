"""A system of LiteX, Verilated whole: firmware on VexRiscv recognises digits; what is wrong is no hang."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from cosim.accelerator.device import BusError
from cosim.emit import EmitError
from cosim.simulate.verilator import BuildError
from cosim.system import firmware, soc
from tests.cosim.accelerator.built import ACCELERATOR

from .test_run import network, recognised

pytest.importorskip("litex")
pytestmark = pytest.mark.cosim
LEVEL = "-O1"
__all__ = ["network"]    # the fixture


@pytest.fixture(autouse=True)
def tools():
    try:
        firmware.compiler()
    except BuildError as error:
        pytest.skip(str(error))


def test_firmware_recognises_digits(network):
    """Every number is PyTorch's, with the interrupt and without."""
    program, images, classes, want = network
    for interrupts in (True, False):
        ran = soc.recognise(program, images, classes, interrupts=interrupts, level=LEVEL, limit=3_000_000)
        recognised(ran, want)


def wild(network, seed, runs):
    """What came of a program that runs so often among interrupts that are lost, or come without a reason."""
    program, images, classes, want = network
    ran = soc.recognise(program, images, classes, runs=runs, wild=seed, level=LEVEL, limit=6_000_000)
    assert ran.said.startswith("5 of 8 digits recognised; ") and ran.code == 0, ran
    assert np.array_equal(ran.scores.view(np.uint32), want.view(np.uint32))
    assert ran.interrupts["raised"] == runs
    return ran.interrupts


def test_wild_interrupts(network):
    """They come from the start on, before the firmware has opened the device; one of two is lost."""
    found = wild(network, 1, 20)
    assert found["lost"] > 3 and found["spurious"] > 200 and found["taken"] > 100


@pytest.mark.slow
def test_a_thousand_wild_interrupts(network):
    found = [wild(network, seed, 300) for seed in (2, 3)]
    assert all(each["lost"] > 100 for each in found)
    assert sum(each["lost"] + each["spurious"] for each in found) > 1000


def test_the_interrupt_ends_a_sleep(network, tmp_path, monkeypatch):
    """Of a CPU that would look at what the handler says for ever; without the interrupt it does."""
    shutil.copytree(firmware.LITEX.parent, tmp_path / "examples")
    main = tmp_path / "examples" / "litex" / "main.c"
    text = main.read_text().replace("#define SPINS 1000u ", "#define SPINS 0xFFFFFFFFu ")
    monkeypatch.setattr(firmware, "LITEX", main.parent)
    for enabled, ends in ((text, True), (text.replace('"r"(0x800u)', '"r"(0u)'), False)):
        assert enabled != main.read_text()
        main.write_text(enabled)
        program, images, classes, want = network
        if ends:
            ran = soc.recognise(program, images, classes, level=LEVEL, limit=3_000_000)
            assert ran.code == 0 and np.array_equal(ran.scores.view(np.uint32), want.view(np.uint32))
        else:
            with pytest.raises(BusError, match="^Cycle 1500000: the firmware has not ended$"):
                soc.recognise(program, images, classes, level=LEVEL, limit=1_500_000)


def test_a_program_for_another_machine(network):
    """The file's hash is of another accelerator; the firmware says so, and ends."""
    program, images, classes, _ = network
    other = replace(ACCELERATOR, burst=ACCELERATOR.burst // 2)
    data = replace(program, accelerator=other).to_bytes()

    class Other(type(program)):
        def to_bytes(self):
            return data
    known = {name: getattr(program, name) for name in program.__dataclass_fields__}
    ran = soc.recognise(Other(**known), images, classes, level=LEVEL, limit=3_000_000)
    assert ran.said == "the program was made for another machine\n" and ran.code == 7


def test_firmware_that_does_not_end(network):
    """Nobody says that all is there."""
    folder = soc.emit_soc(ACCELERATOR)
    elf = firmware.build(ACCELERATOR, (*firmware.DIGITS, firmware.LITEX / "main.c"),
                         sections=firmware.LITEX / "sections.ld",
                         headers={"hbfp_soc.h": (folder / "hbfp_soc.h").read_text()})
    rom, memory = np.zeros(1 << 14, np.uint8), np.zeros(1 << 12, np.uint8)
    firmware.place(elf.read_bytes(), rom)
    with soc.Soc(folder, rom, memory, level=LEVEL) as model:
        with pytest.raises(BusError, match="^Cycle 400000: the firmware has not ended$"):
            model.run(400_000)
        assert model.said == ""


@pytest.mark.parametrize("word", [0x0000006F, 0x00000000])
def test_a_rom_without_firmware(word):
    rom, memory = np.full(1 << 12, word, "<u4").view(np.uint8), np.zeros(1 << 12, np.uint8)
    with soc.Soc(soc.emit_soc(ACCELERATOR), rom, memory, level=LEVEL) as model:
        with pytest.raises(BusError, match="^Cycle 5000: the firmware has not ended$"):
            model.run(5000)


def test_memory_is_where_it_was_put():
    """All four banks, and rows that follow each other."""
    rom, memory = np.full(1 << 12, 0x6F, "<u4").view(np.uint8), np.random.default_rng(1).bytes(3 * 4096)
    memory = np.frombuffer(memory, np.uint8)
    with soc.Soc(soc.emit_soc(ACCELERATOR), rom, memory, level=LEVEL) as model:
        assert np.array_equal(model.fetch(len(memory)), memory) and not model.fetch(len(memory) + 4096)[-4096:].any()


def test_the_generator_that_fails(monkeypatch):
    def fails(*_):
        raise soc.generator.GeneratorError("litex is missing")
    monkeypatch.setattr(soc.generator, "emitted", fails)
    with pytest.raises(EmitError, match=r"^python -m gen soc --simulated .*: litex is missing$"):
        soc.emit_soc(ACCELERATOR)
