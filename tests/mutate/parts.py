"""The parts of the accelerator whose netlists are changed, the designs that have them, and what judges each."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np

from cosim.accelerator import device
from cosim.dispatch import check
from cosim.manifest import Manifest
from cosim.simulate.player import Player
from gen.tops import make_top
from golden.spec.dispatch import DispatchUnit
from hbfp import files, generator
from hbfp.manifest import Port
from hbfp.system import Accelerator
from rtl.dispatch.dispatcher import Dispatcher
from tests.cosim.accelerator.built import ACCELERATOR, DISPATCHED
from tests.cosim.dispatch import test_check
from tests.formal import (
    test_ages,
    test_choice,
    test_control,
    test_dispatcher,
    test_fetch,
    test_front,
    test_load,
    test_reader,
    test_report,
    test_ring,
    test_store,
    test_tally,
    test_walk,
    test_writer,
)
from tests.rtl.accelerator import test_issue

from . import text
from .judge import Judge
from .live import Modules
from .netlist import BITS, PORT, Mutant, Netlist, is_kind, netlist


@dataclass(frozen=True)
class Part:
    """A part: the first words of its modules' names, that of the part before those in it; designs that have it.

    ``laws`` has tests of laws by the first words of a module's name, which are asked before others are.
    """
    kinds: tuple[str, ...]
    designs: tuple[str, ...]
    laws: dict[str, ModuleType | SimpleNamespace] = field(default_factory=dict)

    def of_laws(self, module: str) -> ModuleType | SimpleNamespace | None:
        """The test that has laws of a module."""
        return next((test for kind, test in self.laws.items() if is_kind(kind, module)), None)


#: What the command takes by name; modules within a part, such as the walk of loads, count to it.
_KINDS = {"control": (), "reader": (), "writer": (), "fetch": (), "load": ("walk",), "store": ("walk",), "rotate": ()}
_LAWS = {"control": {"control": test_control}, "reader": {"reader": test_reader}, "writer": {"writer": test_writer},
         "fetch": {"fetch": test_fetch}, "load": {"load": test_load, "walk": test_walk.LOADS},
         "store": {"store": test_store, "walk": test_walk.STORES},
         "dispatcher": {"dispatch": test_dispatcher, "dispatch_ages": test_ages, "dispatch_choice": test_choice,
                        "dispatch_report": test_report, "dispatch_tally": test_tally},
         "ring": {"ring": test_ring}, "front": {"front": test_front}}
#: Of the lowering, what has tests of its own, and models that are lowered in tests.
_APART = "training", "random_networks", "zoo", "bert", "picture", "command", "serving", "job", "alone", "fitting"
PARTS = {name: Part((name, *within), ("one context",), _LAWS.get(name, {})) for name, within in _KINDS.items()} | {
    "legality": Part(("decode",), ("decode", "decode, wide")),
    "lowering": Part((), ("lowering",)),
    "dispatcher": Part(tuple(_LAWS["dispatcher"]), ("dispatcher", "dispatcher, told late"), _LAWS["dispatcher"])} | {
    f"dispatched_{name}": Part((name,), ("dispatched",), _LAWS.get(name, {})) for name in (
        "control", "reader", "fetch", "ring", "front")}


class Programs:
    """An accelerator, judged by the tests of ``make test`` that run on its Verilog.

    Parameters
    ----------
    system : Accelerator
    tests : str
        Files of the checkout, or single tests.
    """

    def __init__(self, system: Accelerator, *tests: str) -> None:
        self.system, self.tests = system, tests

    @property
    def netlist(self) -> Netlist:
        """Of the whole accelerator."""
        return netlist(make_top, "accelerator", self.system)

    def judges(self, mutants: list[Mutant]) -> Callable[[int], str]:
        """From the number of a change to the test that saw it, or nothing."""
        folder = Path(device.__file__).parent
        library = self.netlist.library(mutants, {
            "driver.h": (folder / "driver.cpp").read_text(), "dram.h": (folder / "dram.h").read_text(),
            "ports.h": f"#define BEAT {self.system.beat}\n#define TRACE 1\n#define CONTEXTS {self.system.contexts}\n",
            "select.cpp": '#include "driver.h"\nextern "C" API void sim_select(Simulation* sim, uint32_t number) '
                          f"{{ sim->top.{PORT} = number; }}\n"}, device.VERILATE)
        acts = [0]
        opens = device.Device._open

        def opened(self, *arguments):
            opens(self, *arguments)
            self._library.sim_select.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
            self._library.sim_select(self._handle, acts[0])
        device.Device._built, device.Device._open = lambda *_, **__: library, opened
        judge = Judge(self.tests)
        return lambda number: judge.judge(partial(acts.__setitem__, 0, number))


class Words:
    """What decode says of a word, judged by those of ``tests/rtl/accelerator/test_issue.py``.

    Parameters
    ----------
    system : Accelerator
    """
    tests = ("tests/rtl/accelerator/test_issue.py",)
    _DRIVER = f"""\
#include <cstring>
#include "Vdut.h"
extern "C" __attribute__((visibility("default")))
void check(uint32_t number, const uint32_t* words, uint32_t count, uint8_t* wrong) {{
    VerilatedContext context;
    Vdut top{{&context}};
    top.{PORT} = number;
    for (uint32_t i = 0; i < count; ++i) {{
        std::memcpy(&top.word, words + 16 * i, 64);
        top.eval();
        wrong[i] = top.wrong;
    }}
}}
"""

    def __init__(self, system: Accelerator) -> None:
        self.system = system

    @property
    def netlist(self) -> Netlist:
        """Of decode without its queues."""
        return netlist(test_issue.Decode, self.system)

    def judges(self, mutants: list[Mutant]) -> Callable[[int], str]:
        """As :meth:`Programs.judges`."""
        words = test_issue.words(np.random.default_rng(1), 2000) + test_issue.turned(self.system)
        expected = np.array([not test_issue.legal(word, self.system) for word in words], np.uint8)
        given = np.frombuffer(b"".join(word.to_bytes(64, "little") for word in words), np.uint32)
        check = ctypes.CDLL(str(self.netlist.library(mutants, {"driver.cpp": self._DRIVER}))).check

        def judge(number):
            found = np.empty(len(words), np.uint8)
            check(number, given.ctypes.data_as(ctypes.c_void_p), len(words), found.ctypes.data_as(ctypes.c_void_p))
            return "" if np.array_equal(found, expected) else f"{self.tests[0]}::word {(found != expected).argmax()}"
        if judge(0):
            raise RuntimeError(f"{judge(0)} is wrong without a change")
        return judge


class Played:
    """The dispatcher by itself, beside its twin, judged by the cases of a test that run by default.

    Parameters
    ----------
    system : DispatchUnit
    """
    tests = ("tests/cosim/dispatch/test_check.py",)

    def __init__(self, system: DispatchUnit) -> None:
        self.system = system

    @property
    def netlist(self) -> Netlist:
        """Of all of it."""
        return netlist(Dispatcher.made, self.system)

    def judges(self, mutants: list[Mutant]) -> Callable[[int], str]:
        """As :meth:`Programs.judges`."""
        changed = self.netlist

        class Changed(Player):
            def _built(self, manifest, sources, *_):
                return changed.library(mutants, sources)
        manifest = Manifest.load(generator.emitted("dispatch", check.words(self.system)))
        ports = manifest.ports | {PORT: Port("in", BITS)}
        player = Changed(Manifest(manifest.path, replace(manifest.data, ports=ports)))
        recorded = []
        for case in test_check.DEFAULT:
            if case.unit == self.system:
                inputs, outputs, _ = check.record(case)
                recorded.append((case.name, check.ports_in(case.unit, inputs), check.ports_out(case.unit, outputs)))

        def judge(number):
            for name, given, wanted in recorded:
                found = player.play(given | {PORT: [number] * len(given["rst"])})
                if check.differences(found, wanted):
                    return f"{self.tests[0]}::{name}"
            return ""
        if judge(0):
            raise RuntimeError(f"{judge(0)} is wrong without a change")
        return judge


class Live:
    """Python modules, judged by the tests that cover any of them, as far as these reach what is changed.

    Parameters
    ----------
    netlist : Modules
    """
    system = None

    def __init__(self, netlist: Modules) -> None:
        self.netlist = netlist

    @property
    def tests(self) -> list[str]:
        """All of these tests."""
        return sorted({test for module in self.netlist.modules for test in text.tests_of(module)})

    def judges(self, mutants: list[Mutant]) -> Callable[[int], str]:
        """As :meth:`Programs.judges`; what never ends is seen, too."""
        judge = Judge(self.tests, [str(files.ROOT / module) for module in self.netlist.modules])

        def judged(number):
            mutant = mutants[number - 1]
            return judge.judge(partial(self.netlist.act, mutant), *self.netlist.place(mutant))
        return judged


#: Designs by name.
DESIGNS = {
    "one context": Programs(ACCELERATOR, *(f"tests/rtl/accelerator/{name}.py" for name in (
        "test_accelerator", "test_watch_dog")), "tests/cosim/accelerator/test_host.py",
        "tests/cosim/command/test_words.py::test_words"),
    "dispatched": Programs(DISPATCHED, "tests/cosim/accelerator/test_contexts.py",
                           "tests/cosim/accelerator/test_dispatched.py",
                           "tests/cosim/accelerator/test_descriptors.py"),
    "dispatcher": Played(check.SMALL), "dispatcher, told late": Played(check.STAMPED),
    "lowering": Live(Modules("golden/lower", *_APART)),
    "decode": Words(test_issue.SYSTEM), "decode, wide": Words(test_issue.WIDE),
}
