"""The parts of the accelerator whose netlists are changed, the designs that have them, and what judges each."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from types import ModuleType, SimpleNamespace

import numpy as np

from cosim.dispatch import check
from cosim.manifest import Manifest
from cosim.simulate.player import Player
from golden.spec.dispatch import DispatchUnit
from hbfp import files, generator
from hbfp.manifest import Port
from hbfp.options import pods_from_values
from hbfp.system import Accelerator
from rtl.dispatch.dispatcher import Dispatcher
from tests.cosim.accelerator.built import ACCELERATOR, DISPATCHED
from tests.cosim.dispatch import test_check
from tests.cosim.pods import test_check as test_pods
from tests.formal import (
    test_ages,
    test_choice,
    test_control,
    test_counters,
    test_dispatcher,
    test_drain,
    test_fetch,
    test_front,
    test_load,
    test_memories,
    test_multiply,
    test_queue,
    test_reader,
    test_registers,
    test_report,
    test_ring,
    test_store,
    test_tally,
    test_walk,
    test_weights,
    test_writer,
)
from tests.formal import test_issue as laws_of_issue
from tests.rtl.accelerator import test_issue

from . import text
from .emitted import Emitted
from .judge import Judge
from .live import Modules
from .netlist import ALL, BITS, MOST, PORT, Mutant, Netlist, is_kind, netlist


@dataclass(frozen=True)
class Part:
    """A part: the first words of its modules' names, that of the part before those in it; designs that have it.

    ``laws`` has tests of laws by the first words of a module's name. What a file ``without`` says in it is no part.
    """
    kinds: tuple[str, ...]
    designs: tuple[str, ...]
    laws: dict[str, ModuleType | SimpleNamespace] = field(default_factory=dict)
    without: str = ""

    def drawn(self, netlist: Netlist | Modules, count: int, seed: int) -> list[Mutant]:
        """Changes of it in a design, drawn by a seed."""
        if not self.without:
            return netlist.drawn(self.kinds, count, seed)
        return [each for each in netlist.drawn(self.kinds, MOST, seed)
                if not each.source.startswith(f"{self.without}:")][:count]

    def of_laws(self, netlist: Netlist | Modules, module: str) -> list[tuple[str, ModuleType | SimpleNamespace]]:
        """Of what is there a law that judges a change of a module, with its test: it, or what has it in it."""
        if not self.laws:
            return []

        def of(name):
            return [(name, test) for kind, test in self.laws.items() if is_kind(kind, name)]
        return of(module)[:1] or [each for user in netlist.users(module) for each in of(user)[:1]]


#: What the command takes by name; modules within a part, such as the walk of loads, count to it.
_KINDS = {"control": (), "reader": (), "writer": (), "fetch": (), "load": ("walk",), "store": ("walk",), "rotate": ()}
_LAWS = {"control": {"control": test_control}, "reader": {"reader": test_reader}, "writer": {"writer": test_writer},
         "fetch": {"fetch": test_fetch}, "load": {"load": test_load, "walk": test_walk.LOADS},
         "store": {"store": test_store, "walk": test_walk.STORES},
         "dispatcher": {"dispatch": test_dispatcher, "dispatch_ages": test_ages, "dispatch_choice": test_choice,
                        "dispatch_report": test_report, "dispatch_tally": test_tally},
         "queue": {"queue": test_queue}, "memories": {"[vxwp]_memory": test_memories, "ram": test_memories},
         "multiply": {"multiply": test_multiply},
         "drain": {"drain_to_v": test_drain}, "weights": {"feed_weights": test_weights},
         "registers": {"registers": test_registers}, "counters": {"counters": test_counters},
         "ring": {"ring": test_ring}, "front": {"front": test_front}}
#: Parts with all that is in them.
_WHOLE = {"queue": "queue", "multiply": "multiply", "drain": "drain_to_v", "convert": "convert",
          "weights": "feed_weights", "vector": "vector_on_v", "registers": "registers", "counters": "counters",
          "memories": "[vxwp]_memory", "core": r"m\d+_\S+_array"}
#: Of the lowering, what has tests of its own, and models that are lowered in tests.
_APART = "training", "random_networks", "zoo", "bert", "picture", "command", "serving", "job", "alone", "fitting"
PARTS = {name: Part((name, *within), ("one context",), _LAWS.get(name, {})) for name, within in _KINDS.items()} | {
    name: Part((kind, ALL), ("programs",), _LAWS.get(name, {})) for name, kind in _WHOLE.items()} | {
    "issue": Part(("issue",), ("programs",), {"issue": laws_of_issue}, "rtl/accelerator/legal.py"),
    "pods": Part((r"m\d+_\S+_pods\d+_\S+", ALL), ("pods",)),
    "legality": Part(("decode",), ("decode", "decode, wide")),
    "lowering": Part((), ("lowering",)),
    "dispatcher": Part(tuple(_LAWS["dispatcher"]), ("dispatcher", "dispatcher, told late"), _LAWS["dispatcher"])} | {
    f"dispatched_{name}": Part((name,), ("dispatched",), _LAWS.get(name, {})) for name in (
        "control", "reader", "fetch", "ring", "front")}


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
        """As :meth:`.emitted.Emitted.judges`."""
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
        """As :meth:`.emitted.Emitted.judges`."""
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
        """As :meth:`.emitted.Emitted.judges`; what never ends is seen, too."""
        judge = Judge(self.tests, [str(files.ROOT / module) for module in self.netlist.modules])

        def judged(number):
            mutant = mutants[number - 1]
            return judge.judge(partial(self.netlist.act, mutant), *self.netlist.place(mutant))
        return judged


#: Designs by name.
DESIGNS = {
    "one context": Emitted("accelerator", ACCELERATOR, *(f"tests/rtl/accelerator/{name}.py" for name in (
        "test_accelerator", "test_watch_dog")), "tests/cosim/accelerator/test_host.py",
        "tests/cosim/command/test_words.py::test_words"),
    "programs": Emitted("accelerator", ACCELERATOR, "tests/cosim/accelerator/test_host.py",
                        "tests/cosim/accelerator/test_corners.py::test_some_on_the_verilog",
                        *(f"tests/rtl/accelerator/test_accelerator.py::test_{name}" for name in (
                            "random_programs_are_those_of_the_golden_machine", "registers_are_those_of_the_map",
                            "a_queue_waits_for_all_that_is_waited_for", "what_is_wrong_has_its_cause_and_number",
                            "what_an_error_cuts_short_leaves_no_trace", "doorbell_stop_and_reset"))),
    "dispatched": Emitted("accelerator", DISPATCHED, "tests/cosim/accelerator/test_contexts.py",
                           "tests/cosim/accelerator/test_dispatched.py",
                           "tests/cosim/accelerator/test_descriptors.py"),
    "pods": Emitted("pods", pods_from_values(test_pods.SMALL), "tests/cosim/pods/test_check.py"),
    "dispatcher": Played(check.SMALL), "dispatcher, told late": Played(check.STAMPED),
    "lowering": Live(Modules("golden/lower", *_APART)),
    "decode": Words(test_issue.SYSTEM), "decode, wide": Words(test_issue.WIDE),
}
