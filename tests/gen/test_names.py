# amaranth: UnusedElaboratable=no
"""Names of the text, over many designs: a module's name says all of its logic, and a person can read the others."""

import random
import re

import pytest

from gen.emit import Emitter, verilog
from gen.units import NETWORKS, make_part, make_unit
from hbfp.options import design_from_values
from hbfp.values import OptionError

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


class Collected:
    """Modules of many designs and of units beside them.

    ``emitter`` has each name once, ``clashes`` the names that mean two texts.
    """

    def __init__(self, items):
        self.emitter, self.clashes = Emitter(), []
        known = self.emitter.texts
        made = [make_unit(unit, design_from_values(values)) for unit, values in items]
        networks = [make_part(name, {"pods": pods}) for name in NETWORKS for pods in (2, 8)]
        for component in made + [make_part("dispatch", {}), make_part("vector", {})] + networks:
            emitter = Emitter()
            emitter.convert(component)
            self.clashes += [name for name, text in emitter.texts.items() if known.get(name, text) != text]
            for kept, more in ((known, emitter.texts), (self.emitter.cells, emitter.cells),
                               (self.emitter.uses, emitter.uses)):
                kept |= {name: value for name, value in more.items() if name not in kept}


@pytest.fixture(scope="module", params=[20, pytest.param(400, marks=pytest.mark.slow)])
def collected(request):
    return Collected(drawn(request.param))


@pytest.fixture(scope="module")
def text(collected):
    """All modules in one Verilog text."""
    return verilog(collected.emitter)


def test_a_name_means_one_text(collected):
    assert collected.clashes == []


def test_no_name_is_missing(text):
    """Where Amaranth finds no name for a signal it writes one that says nothing."""
    assert re.findall(r"\\\$signal\S*", text) == []


def test_no_name_is_a_keyword(text):
    """A plain word is escaped only if it is a keyword of Verilog."""
    assert sorted(set(re.findall(r"\\([A-Za-z_]\w*) ", text))) == []


def test_memories_have_no_initial_values(text):
    assert re.findall(r"^ *initial\b.*", text, re.MULTILINE) == []
