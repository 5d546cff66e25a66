"""Changes of a netlist by Yosys, all of them in one model, and proofs that a change changes nothing.

Yosys's ``mutate`` draws bits at the ports of cells, evenly over cells, signals and lines of the source: a bit becomes
constant, is turned round, or is turned round where another is high or low. Operators, constants, conditions, enables
and resets are such bits. A number at a port of the model says which change acts; with 0 none does.
"""

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cosim.simulate.verilator import build_library
from gen.emit import Emitter, netlists
from hbfp import files
from tests import yosys
from tests.formal.prove import Step, answer

#: The port with the number, and its bits.
PORT, BITS = "mutant", 16
#: Of models: their optimisation, and options of Verilator, which warns of Yosys's text, not of ours.
LEVEL, TOLERANT = "-O1", ("-Wno-lint", "-Wno-fatal")
#: Changes that are drawn of a part, of which the first ones are taken: more are the same ones and others.
MOST = 2000
#: Cycles of the induction by which sequences are proved, and the seconds that a solver may take.
STEPS, PATIENCE = 4, 20
#: Changes that Yosys makes one behind the other, since it takes longer to begin than for one of them.
ONCE = 25
#: The kind of every module.
ALL = "*"
#: Yosys's words for none.
NO_CHANGE = "select -none"
#: From what Amaranth writes to cells whose bits can change, which have names of their own from then on.
_PREPARE = "read_rtlil design.il; hierarchy -top {}; proc; memory_collect; opt_expr; opt_clean; write_rtlil design.il"
_READ = "read_rtlil design.il; hierarchy -top {}"
#: To logic and registers.
_FLAT = "flatten; opt_clean; memory_map; opt_expr; dffunmap; opt_clean"
#: Names that people gave stay, of registers that a change makes constant or of no use, too: laws speak of them.
_NAMES = "setattr -set keep 1 w:* w:$* %d"
_MITER = "miter -equiv -flatten gold gate both; hierarchy -top both; opt -nodffe -nosdff"


@dataclass
class Mutant:
    """A change: Yosys's words for it, its module, its line of the source, what came of it, and the test that saw it."""
    words: str
    module: str
    source: str
    verdict: str = ""
    test: str = ""


def is_kind(kind: str, module: str) -> bool:
    """Whether a module's name begins with the words of a kind of parts, an expression."""
    return kind == ALL or re.match(rf"(hbfp_)?{kind}(_[a-z]+\d|$)", module) is not None


def _named(module):
    """A module whose names that Yosys has made are counted in it, and not in the whole design."""
    numbers = {}
    return re.sub(r"(\$(?:proc|auto)[^\s$]*(?:\$\S+)?)\$(\d+)(?=[_\s])",
                  lambda found: f"{found[1]}${numbers.setdefault(found[0], len(numbers))}", module)


class Netlist:
    """A component and all that is in it.

    Parameters
    ----------
    component : Component
        Its top.

    Attributes
    ----------
    text : str
        RTLIL of cells, with the lines of the source.
    top : str
        Module of the component.
    uses : dict of str to dict
        Module -> the modules that it has in it.
    """

    def __init__(self, component):
        emitter = Emitter(sources=True)
        self.top = emitter.convert(component)
        self.text, self.uses = "\n".join(netlists(emitter)), emitter.uses
        with self._folder() as folder:
            yosys.run(folder, _PREPARE.format(self.top))
            self._modules = {found[1]: _named(found[0]) for found in re.finditer(
                r"^(?:attribute [^\n]*\n)*module \\(\S+)\n.*?^end$", (folder / "design.il").read_text(), re.M | re.S)}
        self.text = "\n".join(self._modules.values())

    def digest(self, module: str) -> str:
        """A name for a module's logic."""
        return files.key(re.sub(r"^ *attribute .*\n", "", self._modules[module], flags=re.MULTILINE))

    @contextmanager
    def _folder(self):
        """A folder with the text in it."""
        with files.scratch() as folder:
            (folder / "design.il").write_text(self.text)
            yield folder

    def modules(self, kinds: tuple[str, ...]) -> list[str]:
        """Modules of a part: those of its first kind, and those of the others that they have in them."""
        first = [name for name in self.uses if is_kind(kinds[0], name)]
        inside = dict.fromkeys(name for each in first for name in self._inside(each))
        return [*first, *(name for kind in kinds[1:] for name in inside if is_kind(kind, name))]

    def users(self, module: str) -> list[str]:
        """Modules that have one in them."""
        return [name for name in self.uses if module in self._inside(name)]

    def _inside(self, module):
        """Modules in one, each before those in it."""
        return dict.fromkeys(name for part in self.uses[module] for name in (part, *self._inside(part)))

    def drawn(self, kinds: tuple[str, ...], count: int, seed: int) -> list[Mutant]:
        """Changes of a part, drawn by a seed; clocks stay."""
        chosen = " ".join(f"{name}/*" for name in self.modules(kinds))
        with self._folder() as folder:
            yosys.run(folder, _READ.format(self.top), f"select {chosen}",
                      f"mutate -list {MOST} -seed {seed + 1} -o list.txt")
            lines = (folder / "list.txt").read_text().splitlines()
        random.Random(seed).shuffle(lines)    # a list of all of them has the order of the cells
        found = {}
        for line in lines:
            words = re.split(" -(?:wire|src) ", line)[0]
            if " -port CLK " not in line:
                sources = re.findall(r"-src \S*?((?:rtl|hbfp)/\S+)", line)
                found.setdefault(words, Mutant(words, re.search(r"-module \\?(\S+)", line)[1], (sources or [""])[-1]))
        return list(found.values())[:count]

    def verilog(self, mutants: list[Mutant]) -> str:
        """Text in which any one of the changes may act: that whose number is at the port :data:`PORT`."""
        acting = [f"{mutant.words} -ctrl {PORT} {BITS} {number}" for number, mutant in enumerate(mutants, 1)]
        with self._folder() as folder:
            yosys.run(folder, _READ.format(self.top), *acting, "opt_clean", "write_verilog -norename -noattr design.v")
            return (folder / "design.v").read_text()

    def library(self, mutants: list[Mutant], sources: dict[str, str]) -> Path:
        """A Verilated model of :meth:`verilog`, linked with C++ that sets its port.

        ``sources`` are those of :func:`cosim.simulate.verilator.build_library`.
        """
        with files.scratch() as folder:
            files.write(folder / "design.v", self.verilog(mutants))
            return build_library(folder / "design.v", self.top, sources, level=LEVEL, verilate=TOLERANT)

    def steps(self, changes: list[str], module: str, hollow: tuple[str, ...] = ()) -> Iterator[Step]:
        """A cycle of a module with all that is in it, for each of several changes, there or in it, by words of Yosys.

        Modules in it of the kinds ``hollow`` are cut away: their ports are ports of the whole.
        """
        names = [name for name in self._inside(module) if any(is_kind(kind, name) for kind in hollow)]
        black, cut = ([f"blackbox {' '.join(names)}"], ["expose -evert -sep . top/c:*"]) if names else ([], [])
        last = f"rename {module} top", "flatten", *cut, _FLAT
        for some in (changes[first:first + ONCE] for first in range(0, len(changes), ONCE)):
            with self._folder() as folder:
                yosys.run(folder, _READ.format(module), "design -save all", *(line for number, words in enumerate(some)
                          for line in ("design -load all", words, "select -clear", *black, _NAMES, *last,
                                       f"write_smt2 -stbv -wires {number}.smt2")))
                texts = [(folder / f"{number}.smt2").read_text() for number, _ in enumerate(some)]
            yield from map(Step, texts)

    @cache    # noqa: B019 - of few netlists, which live as long as the process
    def step(self, module: str, hollow: tuple[str, ...] = ()) -> Step:
        """That of a module as it is."""
        return next(self.steps([NO_CHANGE], module, hollow))

    def equal(self, mutant: Mutant, kinds: tuple[str, ...]) -> bool:
        """Whether a change is proved to change nothing at the ports of its module, or of the part that has it in it.

        Proofs are for all inputs. First as logic: next values of registers and outputs are the same for any values of
        registers, which begin alike. Then as sequences from the initial values on, by induction.
        """
        first = self.modules(kinds[:1])
        places = [mutant.module, *(user for user in self.users(mutant.module) if user in first)]
        return any(self._equal(mutant, place) for place in places)

    def _equal(self, mutant, whole):
        sides = []
        for name, change in (("gold", NO_CHANGE), ("gate", mutant.words)):
            sides += ["design -reset", _READ.format(whole), change, "select -clear", _FLAT,
                      f"rename {whole} {name}", f"design -stash {name}"]
        both = ["design -reset", "design -copy-from gold gold", "design -copy-from gate gate"]
        with self._folder() as folder:
            def smt(preparation):
                yosys.run(folder, *sides, *both, f"{preparation}{_MITER}; write_smt2 -stbv both.smt2")
                return (folder / "both.smt2").read_text() + "(declare-const s0 |both_s|)"
            differ = "(|both_n trigger| s{})".format
            try:
                if answer(f"{smt('expose -evert-dff gold gate; ')}(assert {differ(0)})", PATIENCE) == "unsat":
                    return True
            except RuntimeError as error:    # one of the two lacks a register
                if "No matching port" not in str(error):
                    raise
            sequence = smt("")
        states = "".join(f"(declare-const s{n} |both_s|)(assert (|both_t| s{n - 1} s{n}))" for n in range(1, STEPS + 1))
        ever = " ".join(map(differ, range(STEPS)))
        return all(answer(f"{sequence}{states}(assert {law})", PATIENCE) == "unsat" for law in (
            f"(and (|both_i| s0) (or {ever}))", f"(and (not (or {ever})) {differ(STEPS)})"))


@cache
def netlist(make, *arguments) -> Netlist:
    """The netlist of the component that ``make`` gives, made once."""
    return Netlist(make(*arguments))
