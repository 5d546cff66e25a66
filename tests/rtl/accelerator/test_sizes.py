# amaranth: UnusedElaboratable=no
"""Accelerators that differ in one option share all parts that do not read it: equal name, equal text, both ways."""

import hashlib
import re
from dataclasses import fields, replace

import pytest

from gen.emit import Emitter
from hbfp.describe import declared
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.options import OPTIONS
from hbfp.system import Accelerator
from rtl.accelerator.accelerator import Accelerator as Top
from rtl.accelerator.array_core import ArrayCore
from rtl.accelerator.fetch import Fetch
from rtl.accelerator.load import Load
from rtl.accelerator.reader import Reader
from rtl.accelerator.sizes import Sizes
from rtl.accelerator.store import Store
from rtl.accelerator.writer import Writer
from rtl.vector.unit import Vector
from tests.cases import sweep

SYSTEM = Accelerator(core=Design(rows=8, depth=16, format=HBFPFormat(block=(1, 8), mantissa=4)), x_words=256,
                     w_words=256, v_words=256, p_words=64, row_words=4, vector_rows=2)
#: What two contexts change, and what a dispatcher in front of them.
_CONTEXTS = {"registers", "control", "fetch", "x_memory", "w_memory", "v_memory", "p_memory"}
_DISPATCHED = {"counters_apart", "front", "dispatch", "dispatch_choice", "dispatch_report", "dispatch_tally",
               "dispatch_ages", "issue", "load", "store", "walk", "queue"}
#: Option -> another value, and the kinds of the modules that are others then, beside queues and memories.
OTHERS = {
    "queue": (8, {"issue", "queue"}),
    "reads": (4, {"load", "reader", "writer"}),
    "burst": (8, {"fetch", "load", "store", "walk", "reader", "writer"}),
    "row_words": (8, {"registers", "vector_on_v", "vector"}),
    "register_copies": (1, {"vector_on_v", "vector"}),
    "vector_rows": (4, {"registers", "vector_on_v", "vector"}),
    "vector_lanes": (2, {"registers", "vector_on_v", "vector"}),
    "function_lanes": (2, {"registers", "vector_on_v", "vector"}),
    "short_rows": (2, {"vector_on_v", "vector"}),
    "functions": (("exp", "log"), {"registers", "vector_on_v", "vector"}),
    "x_words": (512, {"registers", "x_memory"}),
    "w_words": (512, {"registers", "w_memory", "load", "walk"}),
    "v_words": (512, {"registers", "v_memory", "load", "store", "walk"}),
    "p_words": (128, {"registers", "p_memory", "load", "walk"}),
    "memory_banks": (4, {"x_memory", "w_memory", "v_memory", "p_memory", "vector_on_v", "vector"}),
    "contexts": (2, _CONTEXTS | {"counters"}),
    "dispatch": (16, _CONTEXTS | _DISPATCHED),
    "dispatch_batch": (4, _CONTEXTS | _DISPATCHED),
    "dispatch_ring": (True, _CONTEXTS | _DISPATCHED | {"ring", "reader"}),
    "arrays": (2, {"arrays", "array_core"}),
    "parity": (True, {"x_memory", "w_memory", "v_memory", "p_memory"}),
}
#: Option -> what it takes beside it.
BESIDE = {"contexts": {"p_words": 64}, "dispatch": {"contexts": 2}, "dispatch_batch": {"contexts": 2, "dispatch": 4},
          "dispatch_ring": {"contexts": 2, "dispatch": 4, "dispatch_batch": 4},
          "arrays": {"core": replace(SYSTEM.core, cols=4, group=None)}}    # as many columns together


class Quick(Emitter):
    """Without the text of what belongs to no part, most of an accelerator, and of modules that are ``known``."""

    def __init__(self, known):
        super().__init__()
        self.known = known

    def convert(self, cell):
        if not isinstance(cell, (ArrayCore, Vector)) and cell.module not in self.known:
            return super().convert(cell)
        self.cells[cell.module], self.uses[cell.module], self.texts[cell.module] = cell, {}, cell.module
        return cell.module


class Emitted:
    """Modules of an accelerator, or some; ``meaning`` is a module's text with those of its parts and no names."""

    def __init__(self, system, known=None, parts=(Top,)):
        known = known or {}
        self.emitter = Quick(known)
        for part in parts:
            self.emitter.convert(part.of(system))
        self.texts, self.meaning = self.emitter.texts, dict(known)
        for name, text in self.texts.items():    # parts come before their users
            if name not in known:
                means = re.sub(r"(?<=\\)hbfp_\w+", lambda found, name=name: "" if found[0] == name else
                               self.meaning.get(found[0], found[0]), text)
                self.meaning[name] = hashlib.sha256(means.encode()).hexdigest()


@pytest.fixture(scope="module")
def usual():
    return Emitted(SYSTEM)


def test_every_option_is_here():
    assert set(OTHERS) == {name for name in declared(Accelerator) if name not in OPTIONS}


def changed(option):
    """The accelerator with another value of an option."""
    return replace(SYSTEM, **{option: OTHERS[option][0]}, **BESIDE.get(option, {}))


@pytest.mark.parametrize("option", sweep(5, OTHERS))
def test_others_share_what_does_not_read_the_option(usual, option):
    """By name; and what has another name has another text, in which others stand by their names."""
    other = Emitted(changed(option), usual.meaning)
    new, old = (one.texts.keys() - two.texts.keys() for one, two in ((other, usual), (usual, other)))
    assert {other.emitter.cells[name].kind for name in new} - {"fifo", "ram"} == {"accelerator", *OTHERS[option][1]}
    assert {other.meaning[name] for name in new} & {usual.meaning[name] for name in old} == set()


@pytest.mark.slow    # of random cores and the accelerators of tests/gen/test_names.py always
@pytest.mark.parametrize("option", OTHERS)
def test_what_is_shared_has_one_text(usual, option):
    other = Emitted(changed(option))
    shared = usual.texts.keys() & other.texts.keys()
    assert [name for name in shared if usual.texts[name] != other.texts[name]] == [] and len(shared) > 20


@pytest.mark.parametrize("bursts", [(16, 17, 31), pytest.param(range(1, 33), marks=pytest.mark.slow)])
def test_bursts_share_what_has_only_their_bits(usual, bursts):
    """Of the parts that read ``burst``, equal text has equal name, and equal name equal text."""
    texts, names = {}, {}
    for burst in bursts:
        found = Emitted(replace(SYSTEM, burst=burst), parts=(Fetch, Load, Store, Reader, Writer))
        for name, text in found.texts.items():
            assert texts.setdefault(name, text) == text
            assert names.setdefault(found.meaning[name], name) == name
    other = Emitted(replace(SYSTEM, burst=17), usual.meaning)    # the ports of all parts fit
    assert {other.emitter.cells[name].kind for name in other.texts.keys() - usual.texts.keys()} == {
        "accelerator", "load", "store", "walk", "reader", "writer", "fifo", "ram"}


def test_sizes_are_the_accelerators():
    """By their names there, in its core and in its format."""
    assert Sizes.of(SYSTEM) == Sizes() and fields(Sizes) == ()
