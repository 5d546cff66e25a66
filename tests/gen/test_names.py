# amaranth: UnusedElaboratable=no
"""Names of the text, over many designs: a module's name says all of its text, and a person can read the others.

Covers: gen/text.py.
"""

import ast
import random
import re
import subprocess
import sys
from functools import cache
from itertools import islice

import pytest
from amaranth import Module, Signal, tracer

from gen.emit import FOOTER, HEADER, Emitter, verilog
from gen.tops import TOPS, make_top
from gen.units import NETWORKS, make_part, make_unit
from hbfp.options import design_from_values
from hbfp.values import OptionError

from .emitted import modules

#: Option -> values to draw from. Small, so that many designs take little time; all that change logic are there.
CHOICES = {
    "mantissa": (2, 3, 4, 5, 8, 12, 16), "exponent": (5, 6, 8, 10, 16), "rows": (1, 2, 3, 4, 6), "cols": (1, 2, 3, 4),
    "depth": (1, 2, 5, 8, 16), "block": ((1, 1), (1, 2), (1, 3), (1, 4), (1, 8), (1, 12), (2, 2), (4, 4)),
    "group": ((1, 1), (1, 2), (2, 1), (2, 2), (4, 4)), "pipeline": (0, 1, 2, 3, 6), "share": (1, 1, 2, 4),
    "guard": (0, 2, 5), "growth": (0, 3, 7), "noise_bits": (1, 4, 9), "multiplier": ("plain", "recoded"),
    "accumulate": ("fp32", "aligned"), "arithmetic": ("hbfp", "hbfp", "hbfp", "fp32", "fma", "bf16", "int"),
    "rounding": ("rne", "stochastic", "truncate"), "subnormals": ("flush", "gradual"), "ragged": (False, True),
}
UNITS = ("core",) * 6 + ("dot_product", "dot_product.both", "encode", "vector.hbfp")
#: Designs that share parts and differ in how these multiply, or in where they have registers.
TWINS = [("core", {"arithmetic": "fp32", "rows": 2, "multiplier": "plain"}),
         ("core", {"arithmetic": "fp32", "rows": 2, "multiplier": "recoded"}),
         ("vector.hbfp", {"rows": 4, "block": (1, 4)}), ("vector.hbfp", {"rows": 4, "block": (1, 4), "pipeline": 2}),
         ("vector.hbfp", {"rows": 4, "block": (1, 4), "rounding": "stochastic", "noise_bits": 4}),
         ("vector.hbfp", {"rows": 4, "block": (1, 4), "rounding": "stochastic", "noise_bits": 9})]


def drawn(count):
    """That many (unit, option values), the twins among them, of which no two have the same options."""
    rng, found = random.Random(17), {repr(item): item for item in TWINS}
    while len(found) < count:
        names = rng.sample(list(CHOICES), rng.randrange(3, 10))
        item = rng.choice(UNITS), {"rows": 2, "block": (1, 4)} | {name: rng.choice(CHOICES[name]) for name in names}
        try:
            make_unit(item[0], design_from_values(item[1]))
        except OptionError:
            continue
        found[repr(item)] = item
    return list(found.values())


CORE = {"rows": 4, "block": (1, 4), "depth": 32}
#: Small memories: every bit of one takes time until the text has none of them.
WORDS = {f"{name}_words": 256 for name in "vxwp"}
#: Systems: top, its own options, and those of its core.
SYSTEMS = [("accelerator", WORDS, CORE), ("accelerator", WORDS | {"contexts": 2}, CORE),
           ("pods", {"pods": 4, "bank": 256, "rounds": 256}, {"rows": 4, "block": (1, 4)})]
#: What stands beside cores.
PARTS = [("dispatch", {}), ("vector", {"lanes": 2}), *((name, {"pods": 8}) for name in NETWORKS)]


def systems(count):
    """The components of so many of the systems, the last ones, and of parts."""
    for top, options, core in SYSTEMS[-count:]:
        yield make_top(top, TOPS[top].description(core=design_from_values(core), **options))
    for name, options in PARTS:
        yield make_part(name, options)


@cache
def plain_names(path):
    """Where a file calls something and gives the result one name, in a statement of its own -> the name."""
    found = {}
    with open(path) as file:
        statements = ast.walk(ast.parse(file.read()))
    for item in statements:
        if isinstance(item, ast.Assign) and isinstance(item.value, ast.Call) and len(item.targets) == 1:
            target, call = item.targets[0], item.value
            found[call.lineno, call.end_lineno, call.col_offset, call.end_col_offset] = (
                target.id if isinstance(target, ast.Name) else getattr(target, "attr", None))
    return found


class Tracer:
    """Stands in for Amaranth's search for a signal's name in Python's bytecode, which differs between versions.

    ``places`` gathers where it has to do more than take the name of a plain assignment.
    """

    def __init__(self, patch):
        self.places, self.search = set(), tracer.get_var_name
        patch.setattr(tracer, "get_var_name", self)

    def __call__(self, depth=2, default=None):
        frame = sys._getframe(depth)
        place = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
        name = self.search(depth + 1, default)
        if plain_names(frame.f_code.co_filename).get(place) != name:
            self.places.add(f"{frame.f_code.co_filename}:{place[0]}: {name}")
        return name


class Collected:
    """Modules of many designs and of units beside them.

    ``texts`` has each name once, ``systems`` the whole text of each system and part, by the name of its top.
    ``clashes`` are names that mean two texts, ``unnamed`` places in the code that leave the name of a signal to the
    version of Python.
    """

    def __init__(self, items, count):
        self.texts, self.systems, self.clashes = {}, {}, []
        with pytest.MonkeyPatch.context() as patch:
            names = Tracer(patch)
            for unit, values in items:
                self._take(make_unit(unit, design_from_values(values)))
            for component in systems(count):
                self.systems[component.module] = self._take(component)
        self.unnamed = sorted(names.places)

    def _take(self, component):
        emitter = Emitter()
        emitter.convert(component)
        text = verilog(emitter)
        self.clashes += [name for name, part in modules(text).items() if self.texts.setdefault(name, part) != part]
        return text


#: Designs, and systems: what the accelerator with one context shares with others, tests/rtl/accelerator/test_sizes.py
#: says always.
@pytest.fixture(scope="module", params=[(8, 2), pytest.param((400, 3), marks=pytest.mark.slow)])
def collected(request):
    designs, count = request.param
    return Collected(drawn(designs), count)


@pytest.fixture(scope="module")
def text(collected):
    """All modules in one Verilog text."""
    return "\n".join([HEADER, *collected.texts.values(), FOOTER])


def test_a_name_means_one_text(collected):
    assert collected.clashes == []


def test_no_name_depends_on_the_version_of_python(collected):
    assert collected.unnamed == []


def test_a_name_that_depends_on_the_version_of_python_is_found(monkeypatch):
    names = Tracer(monkeypatch)
    plain = Signal()
    assert plain.name == "plain" and not names.places
    first, _ = Signal(), 0
    second = Module.last = Signal()
    assert len(names.places) == 2 and all(__file__ in place for place in names.places)
    assert (first.name, second.name) != ("first", "first")


@pytest.mark.cosim
@pytest.mark.parametrize("place", range(1 - len(SYSTEMS + PARTS), 0))    # with two contexts the accelerator has all
def test_verilator_warns_of_nothing(collected, place, tmp_path):
    """Cores: tests/gen/test_lint.py."""
    from cosim.simulate.verilator import find_tool
    tool, (top, text) = find_tool(), list(collected.systems.items())[place]
    (tmp_path / "top.v").write_text(text)
    command = [str(tool.program), "--lint-only", "-Wall", "--quiet", "--top-module", top, "top.v"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=tool.environment())
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_what_is_waived_is_said_once_for_each_kind(text):
    """Nothing is turned off for more than declarations: each warning is on again before the logic."""
    for body in modules(text).values():
        declarations = re.split(r"^  (?:assign|always|hbfp_\w+ )", body, maxsplit=1, flags=re.MULTILINE)[0]
        waived = re.findall(r"lint_off (\w+)", body)
        assert sorted(waived) == sorted(re.findall(r"lint_on (\w+)", declarations)), body[:60]
        for block in re.findall(r"lint_off.*?lint_on", declarations, re.DOTALL):
            assert all(line.lstrip().startswith(("input", "output", "wire", "reg", "initial", "(*", "/*", "lint_"))
                       for line in block.split("\n")[1:])


def test_no_name_is_missing(text):
    """Where Amaranth finds no name for a signal it writes one that says nothing."""
    assert re.findall(r"\\\$signal\S*", text) == []


def test_no_name_is_a_keyword(text):
    """A plain word is escaped only if it is a keyword of Verilog."""
    assert sorted(set(re.findall(r"\\([A-Za-z_]\w*) ", text))) == []


def test_memories_have_no_initial_values(text):
    """Nor has anything else in an ``initial``, but for what wakes combinational processes."""
    assert re.findall(r"^ *initial\b(?! wakes <= 0;$).*", text, re.MULTILINE) == []
