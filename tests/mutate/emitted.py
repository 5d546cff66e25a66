"""A design of the generator, judged by the tests of ``make test`` that simulate what the generator writes of it.

Units of arithmetic are judged by their own tests first (:mod:`.units`).
Whatever builds a model there - devices, streams, players, benches of cocotb - gets text that may change in itself. The
number of the change that acts is in the environment when a model begins.
"""

import os
import re
import shutil
from collections.abc import Callable

from cosim.manifest import Manifest
from cosim.simulate import verilator
from gen.tops import make_top
from hbfp import describe, entries, files, generator

from .judge import Judge
from .netlist import BITS, LEVEL, PORT, TOLERANT, Mutant, Netlist, netlist
from .units import alone

#: The variable of the environment.
NUMBER = "HBFP_MUTANT"


def in_itself(text: str, top: str) -> str:
    """Text whose top has no port for the number of a change."""
    before, begin, rest = text.partition(f"module {top}(")
    ports, end, body = rest.partition(");")
    port = f"input [{BITS - 1}:0] {PORT};\n  wire [{BITS - 1}:0] {PORT};"
    inside = f'reg [{BITS - 1}:0] {PORT};\n  initial {PORT} = $c32("std::atoi(std::getenv(\\"{NUMBER}\\"))");'
    return before + begin + re.sub(rf"\b{PORT}, |, {PORT}\b", "", ports) + end + body.replace(port, inside, 1)


class Emitted:
    """A design at the top of the Verilog.

    Parameters
    ----------
    top : str
        Its kind, of :data:`gen.tops.TOPS`.
    system : Accelerator, Design or PodsDesign
    tests : str
        Files of the checkout, or single tests.
    """

    def __init__(self, top: str, system: describe.Description, *tests: str) -> None:
        self.top, self.system, self.tests = top, system, tests

    @property
    def netlist(self) -> Netlist:
        """Of the whole design."""
        return netlist(make_top, self.top, self.system)

    def judges(self, mutants: list[Mutant]) -> Callable[[int], str]:
        """From the number of a change to the test that saw it, or nothing."""
        emitted, build, own = generator.emitted, verilator._build, describe.words(self.system)
        text = in_itself(self.netlist.verilog(mutants), self.netlist.top)

        def fill(folder, name, words):
            shutil.copytree(emitted(name, words), folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*"))
            files.write(Manifest.load(folder).verilog, text)

        def changed(name, words):
            if words not in (own, ["--top", self.top, *own]):
                return emitted(name, words)
            return entries.entry(files.build() / "mutants" / f"{name[:60]}-{files.key(text)}",
                                 lambda folder: fill(folder, name, words))

        def built(folder, text, top, sources, tool, options, flags, level, *others):
            options, level = ([*options, *TOLERANT], LEVEL) if NUMBER.encode() in text else (options, level)
            build(folder, text, top, sources, tool, options, flags, level, *others)
        generator.emitted, verilator._build, os.environ[NUMBER] = changed, built, "0"
        of_unit, judge = alone(self.netlist, mutants), Judge(self.tests)
        return lambda number: of_unit(number) or judge.judge(lambda: os.environ.__setitem__(NUMBER, str(number)))
